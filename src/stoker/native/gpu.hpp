// SPDX-License-Identifier: Apache-2.0
// What a kernel on a GPU is to the run loop, without any device: rows describe themselves, a batch becomes launches.
//
// A step on a GPU goes through the same loop as one on the CPU. Its rows run on the worker threads, where shapes, checks
// and parameters are computed; but `run` only writes a description of the row (addresses, strides, numbers) into `slot`,
// which lies in memory that the device will get. When all rows of the segment have been described, `launch` turns each
// step into a few launches for the whole batch. The views that a kernel sees there hold device addresses: they must
// not be read or written on the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "plan.hpp"

namespace stoker::gpu {

using Address = uint64_t;  // of device memory

// A kernel that a device has loaded. All parameters of kernels are 64 bits wide: addresses, counts, or packed numbers.
struct Function {
  std::string name;
  void* handle = nullptr;  // the device's own; an emulation's function
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

// One step of one batch on its way to the device.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t rows() const = 0;
  virtual bool active(int64_t row) const = 0;         // false: failed, or the step does not run for this row
  virtual const uint8_t* slots() const = 0;           // rows() descriptions, `slot_bytes` apart; zero where not active
  // One of them, for what is to be known of the row when it is judged. The device sees what is written before `launch`
  // returns.
  virtual uint8_t* slot(int64_t row) = 0;
  virtual Address device_slots() const = 0;           // where the device finds them
  // Device memory until the batch is finished, 256-byte aligned, uninitialised.
  virtual Address scratch(size_t bytes) = 0;
  // Host memory, to be filled before the next `launch`, that the device finds at `*device`. 256-byte aligned.
  virtual uint8_t* upload(size_t bytes, Address* device) = 0;
  // Device memory, zeroed, that the host can read once the batch is finished; the same address for all calls.
  virtual Address report(size_t bytes) = 0;
  virtual void launch(const Launch& launch) = 0;      // in order
  // Work that a library issues by itself: called once, before the batch's own work is issued and beside that of other
  // batches; it gives the stream that the batch's launches follow. It may throw DeviceFailure, which fails the batch.
  virtual void call(std::function<uintptr_t()> work) = 0;
};

enum class Verdict : uint8_t {
  Good,
  Redo,   // the row is made again, this step on the CPU (`Call::on_host`)
  Error,  // `error` says why
};

// Memory for one batch that a kernel may take while it describes a row.
class RowMemory {
 public:
  virtual ~RowMemory() = default;
  // Host memory whose content the device gets; a view of it is a fit output of a kernel that makes a row on the CPU.
  virtual uint8_t* host_room(size_t bytes) = 0;
  virtual Address behind(const uint8_t* host) const = 0;  // where the device finds what is in such memory
  virtual Address device_room(size_t bytes) = 0;
};

class Kernel : public stoker::Kernel {
 public:
  virtual size_t slot_bytes() const = 0;              // a multiple of 16
  virtual void launch(Batch& batch) const = 0;
  // After the batch has finished, for kernels that asked for a `report`: what the device wrote about a row, and how that
  // row had described itself.
  virtual Verdict judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const {
    return (void)report, (void)row, (void)slot, (void)error, Verdict::Good;
  }
  // Before another kernel makes a row on the CPU: inputs of which only the device's part is there are made whole, in
  // `host_in`. False: `error` says why they cannot be.
  virtual bool complete(const Call&) const { return true; }
};

}  // namespace stoker::gpu
