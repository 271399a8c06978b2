// SPDX-License-Identifier: Apache-2.0
// Interface between the run loop and kernels on a GPU, independent of any device: rows describe themselves, and a batch
// becomes launches.
//
// A step on a GPU goes through the same loop as a step on the CPU. Its rows run on the worker threads, where shapes,
// checks and parameters are computed; but `run` only writes a descriptor of the row (addresses, strides, numbers) into
// `slot`, in memory that is copied to the device. When all rows of the segment have a descriptor, `launch` turns each
// step into a few launches for the whole batch. The views that a kernel sees there hold device addresses and must not
// be read or written on the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace stoker::gpu {

using Address = uint64_t;  // in device memory

// Kernel function that is loaded on a device. All parameters of kernels are 64 bits wide: addresses, counts, or packed
// numbers.
struct Function {
  std::string name;
  void* handle = nullptr;  // handle of the device, or an emulation's function
};

struct Launch {
  const Function* function = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;  // dynamic shared memory
  static constexpr int kMaxArguments = 12;
  int arguments = 0;
  uint64_t argument[kMaxArguments] = {};

  Launch& with(std::initializer_list<uint64_t> values) {
    arguments = 0;
    for (const uint64_t v : values) argument[arguments++] = v;
    return *this;
  }
};

// Access to the batch's stream for a library call, at the call's position among the launches.
class Fork {
 public:
  virtual ~Fork() = default;
  virtual uintptr_t stream() const = 0;
  // Make later work of the library's stream `other` wait for all of the batch's work before the call.
  virtual void to(uintptr_t other) = 0;
};

// One step of one batch while its launches are planned.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t rows() const = 0;
  virtual bool active(int64_t row) const = 0;  // false: the row has failed or the step does not run for it
  virtual const uint8_t* slots() const = 0;    // rows() descriptors, `slot_bytes` apart; zero for inactive rows
  // Return one of the descriptors, to store information for `judge`. The device sees what is written before `launch`
  // returns.
  virtual uint8_t* slot(int64_t row) = 0;
  virtual Address device_slots() const = 0;  // device address of the descriptors
  // Return device memory until the batch is finished, 256-byte aligned, uninitialised.
  virtual Address scratch(size_t bytes) = 0;
  // Return host memory that is copied to `*device`; fill it before the next `launch`. 256-byte aligned.
  virtual uint8_t* upload(size_t bytes, Address* device) = 0;
  // Return zeroed device memory that the host can read once the batch is finished; all calls return the same address.
  virtual Address report(size_t bytes) = 0;
  virtual void launch(const Launch& launch) = 0;  // in order
  // Add work that a library issues by itself, at its position among the launches. It runs after the launches before it.
  // The launches after it wait for the stream that `work` returns: the batch's, or a stream of the library that was
  // forked from it. `work` may throw DeviceFailure, which fails the batch.
  virtual void call(std::function<uintptr_t(Fork&)> work) = 0;
  // Like `call`, for work that does not depend on launches and uses a stream of the library's own: it is issued before
  // the batch's launches, in parallel with other batches. Only launches after it in the list wait for its stream.
  virtual void call_ahead(std::function<uintptr_t()> work) = 0;
};

enum class Verdict : uint8_t {
  Good,
  Redo,   // the row runs again with this step on the CPU (`Call::on_host`)
  Error,  // the row fails; `error` says why
};

// Memory of one batch that a kernel may take while it describes a row.
class RowMemory {
 public:
  virtual ~RowMemory() = default;
  // Return host memory that is copied to the device. A kernel that computes a row on the CPU may use it as its output.
  virtual uint8_t* allocate_host(size_t bytes) = 0;
  virtual Address device_address(const uint8_t* host) const = 0;  // device address of such memory
  virtual Address allocate_device(size_t bytes) = 0;
};

class Kernel : public stoker::Kernel {
 public:
  const Kernel* on_device() const final { return this; }
  virtual size_t slot_bytes() const = 0;  // a multiple of 16
  virtual void launch(Batch& batch) const = 0;
  // Evaluate a row after the batch has finished, for kernels that use a `report`: the device's report about the row,
  // and the row's own descriptor.
  virtual Verdict judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const {
    return (void)report, (void)row, (void)slot, (void)error, Verdict::Good;
  }
  // Called instead of `judge` for each row with a descriptor if the batch failed as a whole or is dropped before it is
  // judged. The device no longer works on it.
  virtual void abandon(const uint8_t* slot) const noexcept { (void)slot; }
  // Called before another kernel computes a row on the CPU: complete the inputs that were only read in part, in
  // `host_in`. Return false if that is impossible, with the reason in `error`.
  virtual bool complete(const Call&) const { return true; }
};

}  // namespace stoker::gpu
