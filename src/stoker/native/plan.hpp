// SPDX-License-Identifier: Apache-2.0
// A plan: frozen segments of steps over row values. Nothing here runs; engine.hpp does.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scalar.hpp"
#include "tensor.hpp"

namespace stoker {

struct Job;
struct HeldFile;
namespace gpu {
class Kernel;
class RowMemory;
}  // namespace gpu

enum class Outcome : uint8_t {
  Ok,
  Python,  // this row needs the kernel's Python twin (Call::error may say why); it is parked until that has run
  Error,   // Call::error says why
  OnHost,  // of a kernel on a GPU: the output is there already, in host memory; the device has nothing to do
};

// What a kernel gets for one row (and one frame).
struct Call {
  const double* params;
  const View* const* in;
  View* const* out;           // allocated by the engine, unless the kernel aliases or allocates
  Job& job;
  int64_t row;
  Scratch* work;              // kWorkAreas areas, the thread's own
  Room* own;                  // the memory of output 0, for kernels that allocate
  std::string* error;
  HeldFile* held = nullptr;   // the thread's own, until it leaves the row's segment
  // For kernels on a GPU (gpu.hpp):
  uint8_t* slot = nullptr;                // where the row describes itself
  View* const* host_in = nullptr;         // the inputs as the host has them; `in` are as the device finds them
  gpu::RowMemory* memory = nullptr;
  bool on_host = false;                   // the device could not do this row
  bool may_show = false;                  // output 0 may become a view of other memory that the batch has on the device
  bool in_planes = false;                 // output 0 has no memory; it may become an image in component planes
};
constexpr int kWorkAreas = 4;

// A kernel is a pure function of its inputs, parameters and the row's key; it may be called from many threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Outcome run(const Call& call) const = 0;
  // True if the kernel sets its output views itself (views, row selection).
  virtual bool aliases() const { return false; }
  // True if the size of its one output is known only while it runs (a file's bytes).
  virtual bool allocates() const { return false; }
  // Roughly how much work the row brings for this and later steps, in bytes of compressed data; 0: not known. Asked of
  // kernels that can tell.
  virtual bool tells_cost() const { return false; }
  virtual double cost(const Job&, int64_t) const { return 0; }
};

enum class Where : uint8_t {
  Scratch,  // lives in the row's buffers, within one segment; `slot` is the buffer
  Batch,    // lives in the job, crosses segments
  Output,   // written into the memory of output `slot`
  Input,    // fed by the caller
  Alias,    // a view of another value
  Upload,   // in host memory that a GPU gets
  Device,   // in a GPU's memory
  Words,    // likewise; pixels of three bytes take four
  Planes,   // likewise, in component planes if its kernel makes a row so; that kernel takes the memory
};

struct Value {
  DType dtype;
  int32_t rank;
  Where where;
  int32_t slot;
  int32_t small = 0;  // Batch: which of a row's small values it is, if it is one (Plan::finish counts them)
};
// Values that cross segments and take no more bytes lie side by side for a row, others in memory of their own.
constexpr int64_t kSmallValue = 32;

struct Check {
  int32_t condition;             // register; zero = the row fails
  int32_t message;               // index into the Python side's messages
  std::vector<int32_t> values;   // registers shown in the message
};

struct Guard {
  int32_t value;
  bool wanted;
};

constexpr int kMaxStepInputs = 64, kMaxStepOutputs = 64;

struct Step {
  std::shared_ptr<const Kernel> kernel;  // null in a Python segment
  std::vector<int32_t> in, out;
  ScalarCode scalars;
  std::vector<int32_t> params;
  std::vector<std::vector<int32_t>> extents;  // per output
  std::vector<Check> checks;
  std::vector<Guard> guards;                  // all must hold for the step to run
  int32_t frames = -1;                        // register with the number of frames, or -1
  std::vector<uint8_t> framed_in;             // inputs that are sliced per frame
  bool ordered = false;                       // Python with effects: one batch after the other
  const gpu::Kernel* on_device = nullptr;     // the kernel, if it is one of a GPU
};

enum class Runs : uint8_t { Native, Python, Device };

struct Segment {
  Runs runs = Runs::Native;
  std::vector<int32_t> steps;
  std::vector<int32_t> opens;  // outputs whose memory is allocated when this segment starts
  bool ordered = false;        // has an ordered step
};

struct Output {
  int32_t value;
  bool fixed = false;             // every row has `shape`; memory may come from the consumer
  bool device = false;            // in a GPU's memory
  std::vector<int64_t> shape;
  ScalarCode scalars;             // else: extents of one row, from values of earlier segments
  std::vector<int32_t> extents;
};

struct Plan {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<Segment> segments;
  std::vector<Output> outputs;
  int32_t buffers = 0;     // scratch buffers a row needs
  int32_t readers = 0;     // index columns that a job carries
  int32_t small = 0;       // values of a row that may be small
  size_t registers = 0;    // the longest scalar code
  size_t parameters = 0;   // the most of one step
  size_t ordered_end = 0;  // segments up to here include all ordered ones
  size_t device_begin = 0; // segments from here on run on the device
  bool rows_find_inputs = false;  // nothing reads a row's inputs before the row runs

  std::vector<int32_t> costs;   // steps whose kernel tells it
  std::vector<int32_t> fed;     // values of one axis that the caller feeds: encoded files, if anything
  void finish();
};

}  // namespace stoker
