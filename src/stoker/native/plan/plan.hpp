// SPDX-License-Identifier: Apache-2.0
// Plan: frozen segments of steps over row values. It only holds data; run/engine.hpp runs it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/scratch.hpp"
#include "base/tensor.hpp"
#include "plan/ports.hpp"
#include "plan/scalar.hpp"

namespace stoker {

struct Job;
struct HeldFile;
class StepFacts;
struct Combined;
namespace gpu {
class Kernel;
class RowMemory;
}  // namespace gpu

enum class Outcome : uint8_t {
  Ok,
  Python,  // the row needs the kernel's Python twin (Call::error may say why) and is parked until it has run
  Error,   // Call::error says why
  OnHost,  // for kernels on a GPU: the output is in host memory already, and the device has nothing to do
};

// Arguments of a kernel for one row (and one frame).
struct Call {
  const double* params;
  const View* const* in;
  View* const* out;  // allocated by the engine, unless the kernel aliases or allocates
  Job& job;
  int64_t row;
  Scratch* work;               // the thread's kWorkAreas areas
  BufferAllocator* allocator;  // memory of output 0, for kernels that allocate
  std::string* error;
  HeldFile* held = nullptr;  // the thread's, until it finishes the row's segment
  // For kernels on a GPU (gpu/gpu.hpp):
  uint8_t* slot = nullptr;         // memory for the row's descriptor
  View* const* host_in = nullptr;  // the inputs with host addresses; `in` has device addresses
  gpu::RowMemory* memory = nullptr;
  bool on_host = false;                // the device failed to compute this row
  bool may_show = false;               // output 0 may become a view of other device memory of the batch
  bool in_planes = false;              // output 0 has no memory; it may become an image in component planes
  size_t param_count = 0;              // of `params`
  const Combined* combined = nullptr;  // what Kernel::combine has stored, for kernels that combine rows
};
constexpr int kWorkAreas = 4;

// Result of Kernel::combine for one batch, in memory of the batch.
struct Combined {
  Scratch memory;           // on the host
  uint8_t* data = nullptr;  // of `memory`
  uint64_t on_device = 0;   // address in device memory
  int64_t rows = 0;         // that were combined
  double number = 0;
};

// Arguments of Kernel::combine: all rows that the step runs for and that have not failed before its segment, in order.
struct CombineCall {
  std::vector<View> in;        // of each row, the input of which the kernel reads other rows
  std::vector<double> params;  // `param_count` of each row
  size_t param_count;
  Combined* result;
  gpu::RowMemory* memory;  // for kernels on a GPU; `in` has device addresses then
  std::string* error;
};

// Kernel: a pure function of its inputs, parameters and the row's key. It must be thread-safe.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Declare the tensors and parameters that the kernel takes. Steps are checked against it before any of them runs.
  virtual Ports ports() const = 0;
  // Check a step for what `ports` cannot say; throw by StepFacts::refuse.
  virtual void check(const StepFacts&) const {}
  // Return whether a row's extents fit each other and the parameters, as far as PortRule::same_extents does not say it: else
  // the row fails with *call.error. Must not read elements, which may be on a device. Called before every `run`.
  virtual bool fits(const Call&) const { return true; }
  virtual Outcome run(const Call& call) const = 0;
  // Return whether the kernel has work to do for the rows of a batch together, before `run` is called for any of them.
  virtual bool combines() const { return false; }
  // Do this work. Return false if all rows fail, with *call.error. Only called if combines(), and with at least one row.
  virtual bool combine(const CombineCall&) const { return true; }
  // Return whether the kernel sets its output views itself (views, row selection).
  virtual bool aliases() const { return false; }
  // Return whether the size of the kernel's only output is known only while it runs (a file's bytes).
  virtual bool allocates() const { return false; }
  // Return the approximate work that the row causes in this and later steps, in bytes of compressed data; 0: not known.
  // Only called if has_cost().
  virtual bool has_cost() const { return false; }
  virtual double cost(const Job&, int64_t) const { return 0; }
  // Return the kernel as a GPU kernel, or null.
  virtual const gpu::Kernel* on_device() const { return nullptr; }
};

enum class Storage : uint8_t {
  Scratch,  // in the row's buffers, within one segment; `slot` is the buffer
  Batch,    // in the job; crosses segments
  Output,   // in the memory of output `slot`
  Input,    // fed by the caller
  Alias,    // a view of another value
  Upload,   // in host memory that is copied to a GPU
  Device,   // in a GPU's memory
  Words,    // in a GPU's memory, with four bytes per pixel of three
  Planes,   // in a GPU's memory, in component planes if its kernel produces planes; the kernel takes the memory
  Count,    // in a GPU's memory; copied to the host when the batch is done
};

struct Value {
  DType dtype;
  int32_t rank;
  Storage storage;
  int32_t slot;
  int32_t small = 0;             // Batch: number among the row's small values, if it is small (set by Plan::finish)
  bool is_read_on_host = false;  // Input, Upload: the host reads its elements (set by Plan::finish)
  // Alias: a view of memory that stays as it is while a batch runs, usually the same for all rows: the value has no
  // inputs (set by Plan::finish).
  bool is_constant = false;
};
// Values of at most this size that cross segments are stored next to each other per row; larger ones have memory of
// their own.
constexpr int64_t kSmallValue = 32;

struct Check {
  int32_t condition;            // register; zero: the row fails
  int32_t message;              // index into the Python side's messages
  std::vector<int32_t> values;  // registers shown in the message
};

struct Guard {
  int32_t value;
  bool wanted;
};

// Port whose extents are those of an input.
struct Alike {
  int32_t port, in;
  bool of_input;  // the port is an input too
};

constexpr int kMaxStepInputs = 64, kMaxStepOutputs = 64;

struct Step {
  std::shared_ptr<const Kernel> kernel;  // null in a Python segment
  std::vector<int32_t> in, out;
  ScalarCode scalars;
  std::vector<int32_t> params;
  std::vector<std::vector<int32_t>> extents;  // per output
  std::vector<Check> checks;
  std::vector<Guard> guards;               // the step runs only if all hold
  int32_t frames = -1;                     // register with the number of frames, or -1
  std::vector<uint8_t> framed_in;          // inputs that are sliced per frame
  bool ordered = false;                    // Python with side effects: batches run in order
  const gpu::Kernel* on_device = nullptr;  // the kernel, if it is a GPU kernel
  // Outputs whose first extent is declared as an upper bound, and the output (INT32, no axes) to which the kernel writes
  // the extent itself; -1: there are none.
  std::vector<int32_t> counted;
  int32_t count = -1;
  // Set by Plan::finish:
  std::vector<Alike> alike;
  int32_t other_rows_of = -1;  // as in Ports
  int32_t combined = -1;       // number of the step among those whose kernel combines rows
};

enum class SegmentKind : uint8_t { Native, Python, Device };

struct Segment {
  SegmentKind kind = SegmentKind::Native;
  std::vector<int32_t> steps;
  std::vector<int32_t> opens;  // outputs whose memory is allocated when this segment starts
  bool ordered = false;        // has an ordered step
  bool combines = false;       // has a step whose kernel combines rows
};

struct Output {
  int32_t value;
  bool fixed = false;   // every row has `shape`; memory may come from the consumer
  bool device = false;  // in a GPU's memory
  std::vector<int64_t> shape;
  ScalarCode scalars;  // for outputs without a fixed shape: extents of one row, from values of earlier segments
  std::vector<int32_t> extents;
  int32_t count = -1;  // the value that has a row's first extent; the one in `extents` is an upper bound then
  // Placed outputs: the extents are known when the row has run through the segment. `root` is a value whose kernel
  // allocates it, if possible in the memory of the output: `value` itself, or a value that `value` shows. -1: not placed.
  int32_t root = -1;
  int32_t maker = -1;  // step that makes `root` (set by Plan::finish)
};

struct Plan {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<Segment> segments;
  std::vector<Output> outputs;
  int32_t buffers = 0;      // number of scratch buffers per row
  int32_t readers = 0;      // number of index columns of a job
  int32_t small = 0;        // number of a row's small values
  size_t registers = 0;     // maximum over all scalar code
  size_t parameters = 0;    // maximum over all steps
  size_t ordered_end = 0;   // the segments before this one include all ordered ones
  size_t device_begin = 0;  // segments from here on run on the device
  // Device segments from device_begin to before this one run before a step on the device that reads other rows.
  size_t device_exchange_end = 0;
  int32_t combining = 0;          // number of steps whose kernel combines rows
  bool rows_find_inputs = false;  // no step reads a row's inputs before the row runs

  std::vector<int32_t> inputs;    // values that the caller feeds
  std::vector<int32_t> costs;     // steps whose kernel has a cost
  std::vector<int32_t> fed;       // fed values with one axis: encoded files, if there are any
  bool reads_other_rows = false;  // a row's inputs must be there before other rows run
  bool places_rows = false;       // there are placed outputs
  bool needs_device = false;
  bool finished = false;
  // Check the plan (plan/check.hpp) and derive what the run loop needs. Throw InvalidPlan; only a finished plan runs.
  void finish();
};

}  // namespace stoker
