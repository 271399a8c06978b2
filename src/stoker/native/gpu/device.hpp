// SPDX-License-Identifier: Apache-2.0
// Interface between the run loop and a device: memory, streams, events, launches. gpu/cuda.cpp implements it with
// CUDA's driver, which is opened at run time; gpu/null.cpp keeps everything in host memory, so that planning, memory
// management and kernels compiled for the CPU can be tested on any machine.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"

namespace stoker::gpu {

// Error of the driver, with its text.
class DeviceFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Event = void*;

// Priority of a stream. Kernels of Greatest come before those of a consumer's model, which must then be short.
enum class Priority { Least, Greatest };

// Number of one of the device's work streams. Work of one stream runs in order; several streams run concurrently.
using WorkStream = uint32_t;
constexpr WorkStream kWorkStreams = 4;

// Kernels that were loaded together. Each function keeps its module loaded.
class Module : public std::enable_shared_from_this<Module> {
 public:
  virtual ~Module() = default;
  // Return a kernel. `dynamic_shared_bytes` is the maximum of its launches. Throw DeviceFailure for an unknown name.
  virtual std::shared_ptr<const Function> function(const std::string& name, uint32_t dynamic_shared_bytes) = 0;

 protected:
  std::shared_ptr<Function> keeping_this(std::string name, void* handle) {
    return {new Function{std::move(name), handle}, [module = shared_from_this()](Function* f) { delete f; }};
  }
};

// A device. All functions may be called from any thread that called `enter`. Copies that are issued ahead of the work
// that reads them run on a stream of their own, in the order of the calls. Batches use the work streams in turn, so
// that the end of a batch, when only few of its rows are left, overlaps with the beginning of the next one. They have
// the lowest priority, so that the consumer's model comes first.
class Device {
 public:
  virtual ~Device() = default;
  // For memory checkers: every piece of memory becomes an allocation of its own with exactly the requested size (in
  // whole words), and is never reused. Slow. Set it before anything runs.
  bool separate_allocations = false;
  virtual int number() const = 0;
  virtual std::string name() const = 0;
  virtual int architecture() const = 0;  // 90 for compute capability 9.0; 0 for none
  virtual void enter() = 0;              // prepares the calling thread
  // For threads of the application. `current` returns the thread's current context, since libraries ask the thread for
  // its device, and `leave` restores the context from before `enter`. See Visit.
  virtual void* current() noexcept = 0;
  virtual void leave(void* before) noexcept = 0;

  virtual uint8_t* pin(size_t bytes) = 0;  // page-locked host memory for copies; throws std::bad_alloc
  virtual void unpin(uint8_t* memory) noexcept = 0;
  virtual Address allocate(size_t bytes) = 0;      // throws std::bad_alloc
  virtual void free(Address memory) noexcept = 0;  // waits for all work on the device
  // Release memory that no work uses, so that a later request of the same size may get it. `bytes`: as it was requested.
  virtual void reuse_pinned(uint8_t* memory, size_t bytes) noexcept { return (void)bytes, unpin(memory); }
  virtual void reuse(Address memory, size_t bytes) noexcept { return (void)bytes, free(memory); }

  virtual void copy_in(Address to, const uint8_t* from, size_t bytes) = 0;
  virtual Event record_copies() = 0;  // passes when all copies of `copy_in` issued so far are done
  virtual WorkStream next_work_stream() = 0;
  virtual void await_on(WorkStream work_stream, Event event) = 0;  // the stream's later work waits for the event
  virtual void send(WorkStream work_stream, Address to, const uint8_t* from,
                    size_t bytes) = 0;  // ordered with the stream's work
  virtual void copy_out(WorkStream work_stream, uint8_t* to, Address from,
                        size_t bytes) = 0;  // ordered with the stream's work
  // Ordered with the stream's work; the ranges must not overlap.
  virtual void move(WorkStream work_stream, Address to, Address from, size_t bytes) = 0;
  virtual void launch(WorkStream work_stream, const Launch& launch) = 0;  // ordered with the stream's work

  virtual Event record(WorkStream work_stream) = 0;  // passes when all of the stream's work so far is done
  virtual bool passed(Event event) = 0;
  virtual void await(Event event) = 0;  // blocks the host without spinning
  virtual void forget(Event event) noexcept = 0;
  // Like `record`, for events between which time is measured. They are released with `forget_tick` after they have
  // passed.
  virtual Event tick(WorkStream work_stream) = 0;
  virtual double elapsed_ns(Event from, Event to) = 0;  // both must have passed
  virtual void forget_tick(Event event) noexcept = 0;
  // Make the stream's later work wait for what a consumer has issued to its stream so far.
  virtual void follow(WorkStream work_stream, uintptr_t stream) = 0;
  // Wait on the host for the issued copies and the stream's issued work. A failed device has nothing in flight.
  virtual void drain(WorkStream work_stream) noexcept = 0;

  // Return a stream's stream handle for libraries; make a library's stream wait for the stream's work so far.
  virtual uintptr_t stream_of(WorkStream work_stream) = 0;
  virtual void fork(WorkStream work_stream, uintptr_t stream) = 0;
  // Create a stream for work that a library issues by itself, or that is not a batch's. `finish` waits on the host for that work.
  virtual uintptr_t make_stream(Priority priority) = 0;
  virtual void finish(uintptr_t stream) = 0;
  virtual void drop_stream(uintptr_t stream) noexcept = 0;
  virtual void launch_on(uintptr_t stream, const Launch& launch) = 0;  // ordered with that stream's work
  virtual void copy_in_on(uintptr_t stream, Address to, const uint8_t* from, size_t bytes) = 0;  // likewise
  virtual Event record_on(uintptr_t stream) = 0;  // passes when all of that stream's work so far is done

  // Stream without work, for producers: work that calls `follow` with it waits for all work that the
  // stream waits for.
  virtual uintptr_t order_stream() = 0;
  // Make the order stream wait for what has been issued to a producer's stream so far.
  virtual void order_after(uintptr_t stream) = 0;

  // Return kernels that were loaded under this name, on this device or another open one of the same number; null if there
  // are none.
  virtual std::shared_ptr<Module> find(const std::string& name) { return (void)name, nullptr; }
  // Load kernels, under a name unless it is empty.
  virtual std::shared_ptr<Module> load(const void* image, size_t bytes, const std::string& name) = 0;
  virtual uint64_t free_bytes() = 0;  // free device memory at this moment
};

// Like `await`, for an event that no other code uses; releases it.
inline void wait_and_forget(Device& device, Event event) {
  try {
    device.await(event);
  } catch (const std::exception&) {
    device.forget(event);
    throw;
  }
  device.forget(event);
}

// Call `issue`, which issues work to a stream, and wait on the host until the work is done. If an exception is thrown,
// none of the work is in flight.
template <class F>
void do_now(Device& device, WorkStream work_stream, F&& issue) {
  try {
    issue();
    wait_and_forget(device, device.record(work_stream));
  } catch (const std::exception&) {
    device.drain(work_stream);
    throw;
  }
}

// Prepares an application's thread, which may be using another device, and restores its context at the end of the
// scope.
class Visit {
 public:
  explicit Visit(Device* device) : device_(device), before_(device ? device->current() : nullptr) {
    if (device_) device_->enter();
  }
  // For releasing memory: a device that cannot be entered has failed as a whole, and there is no caller to report
  // errors to.
  Visit(Device* device, std::nothrow_t) noexcept : device_(device), before_(device ? device->current() : nullptr) {
    try {
      if (device_) device_->enter();
    } catch (const std::exception&) {}
  }
  ~Visit() {
    if (device_) device_->leave(before_);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Device* const device_;
  void* const before_;
};

// Open CUDA device `number`. Throw DeviceFailure that names what is missing: the driver, the device, or a newer version
// of either. With `multiprocessors`, kernels run on at most this count of the device's multiprocessors,
// rounded up as the driver does, and leave the others to the application; 0: all. Devices that are released stay open for
// some seconds (gpu/idle_devices.hpp), and are opened without a call of the driver.
std::shared_ptr<Device> open_cuda(int number, unsigned multiprocessors);
// Return the number of CUDA devices; 0 without a driver.
int count_cuda();

// Open a device that uses host memory. A module's image is the path of a shared library whose functions `void
// name(const Launch*)` run a launch; with an empty path every function exists and does nothing.
std::shared_ptr<Device> open_null();
// Return whether a null device is the calling thread's current device.
bool is_null_device_current();
// For tests: number of bytes that the driver appears to use of null devices' memory from now on.
void set_null_driver_bytes(uint64_t bytes);

}  // namespace stoker::gpu
