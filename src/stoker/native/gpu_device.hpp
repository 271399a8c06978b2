// SPDX-License-Identifier: Apache-2.0
// A device as the run loop uses it: memory, streams, events, launches. One implementation talks to CUDA's driver,
// opened at run time (gpu_cuda.cpp); the other keeps everything in host memory (gpu_null.cpp), so that planning, memory
// and kernels that are compiled for the CPU can be tested on any machine.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu.hpp"

namespace stoker::gpu {

// What the driver refused, with its own words.
class DeviceFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Event = void*;

// One of a device's streams for work. Work of one lane is done in order; that of several at the same time.
using Lane = uint32_t;
constexpr Lane kLanes = 4;

// Kernels that were loaded together. Each function keeps its module loaded.
class Module : public std::enable_shared_from_this<Module> {
 public:
  virtual ~Module() = default;
  // Throws DeviceFailure for a name that is not there. `dynamic_shared_bytes`: the most it will be launched with.
  virtual std::shared_ptr<const Function> function(const std::string& name, uint32_t dynamic_shared_bytes) = 0;

 protected:
  std::shared_ptr<Function> keeping_this(std::string name, void* handle) {
    return {new Function{std::move(name), handle}, [module = shared_from_this()](Function* f) { delete f; }};
  }
};

// All calls may come from any thread, which `enter` has prepared. Copies that are issued ahead of the work that reads
// them run on a stream of their own, in the order of their calls. Batches take lanes by turns, so that the end of one, when
// few of its rows are left, runs beside the beginning of the next. All streams have the lowest priority, so that the
// consumer's model comes first.
class Device {
 public:
  virtual ~Device() = default;
  // For tools that watch memory: every piece of it is an allocation of its own, as long as was asked for (in whole
  // words), and none is used again. Slow. Set before anything runs.
  bool apart = false;
  virtual int number() const = 0;
  virtual std::string name() const = 0;
  virtual int architecture() const = 0;  // 90 for compute capability 9.0; 0 for none
  virtual void enter() = 0;              // prepare the calling thread
  // For threads that are not ours: what they have in use now, for libraries that ask the thread which device that is;
  // and how it was before `enter`. See Visit.
  virtual void* current() noexcept = 0;
  virtual void leave(void* before) noexcept = 0;

  virtual uint8_t* pin(size_t bytes) = 0;  // host memory that copies read and write; throws std::bad_alloc
  virtual void unpin(uint8_t* memory) noexcept = 0;
  virtual Address allocate(size_t bytes) = 0;  // throws std::bad_alloc
  virtual void free(Address memory) noexcept = 0;

  virtual void copy_in(Address to, const uint8_t* from, size_t bytes) = 0;
  virtual Event record_copies() = 0;        // passed when all copies of `copy_in` issued so far are done
  virtual Lane next_lane() = 0;
  virtual void await_on(Lane lane, Event event) = 0;  // its work from now on comes after what the event comes after
  virtual void send(Lane lane, Address to, const uint8_t* from, size_t bytes) = 0;  // part of the work
  virtual void copy_out(Lane lane, uint8_t* to, Address from, size_t bytes) = 0;  // part of the work
  virtual void move(Lane lane, Address to, Address from, size_t bytes) = 0;       // part of the work; no overlap
  virtual void launch(Lane lane, const Launch& launch) = 0;                       // part of the work

  virtual Event record(Lane lane) = 0;        // passed when all of its work so far is done
  virtual bool passed(Event event) = 0;
  virtual void await(Event event) = 0;        // on the host, without spinning
  virtual void forget(Event event) noexcept = 0;
  // As `record`, for events between which time is measured. Passed ones are given back with `forget_tick`.
  virtual Event tick(Lane lane) = 0;
  virtual double elapsed_ns(Event from, Event to) = 0;  // both passed
  virtual void forget_tick(Event event) noexcept = 0;
  // The lane's work from now on waits for what a consumer has issued to its stream so far.
  virtual void follow(Lane lane, uintptr_t stream) = 0;
  // Waits on the host for the copies and the lane's work that have been issued. A device that has failed works no more.
  virtual void drain(Lane lane) noexcept = 0;

  // A stream for work that a library issues by itself. `finish` waits on the host for what it has to do.
  virtual uintptr_t make_stream() = 0;
  virtual void finish(uintptr_t stream) = 0;
  virtual void drop_stream(uintptr_t stream) noexcept = 0;

  // A stream that does no work, for producers: what they make its future wait for, `follow` makes work wait for.
  virtual uintptr_t order_stream() = 0;
  // Makes it wait for what has been issued to a producer's stream so far.
  virtual void order_after(uintptr_t stream) = 0;

  virtual std::shared_ptr<Module> load(const void* image, size_t bytes) = 0;
  virtual uint64_t free_bytes() = 0;  // of its memory, at this moment
};

// As `await`, of an event that nobody else knows.
inline void wait_and_forget(Device& device, Event event) {
  try {
    device.await(event);
  } catch (const std::exception&) {
    device.forget(event);
    throw;
  }
  device.forget(event);
}

// Has `issue` issue some of a lane's work, and waits on the host until it is done. Nothing of it is under way if it throws.
template <class F>
void do_now(Device& device, Lane lane, F&& issue) {
  try {
    issue();
    wait_and_forget(device, device.record(lane));
  } catch (const std::exception&) {
    device.drain(lane);
    throw;
  }
}

// Prepares a consumer's thread, which may be using another device, and leaves it as it was.
class Visit {
 public:
  explicit Visit(Device* device) : device_(device), before_(device ? device->current() : nullptr) {
    if (device_) device_->enter();
  }
  // For what gives back: a device that cannot be entered has failed as a whole, and what follows has nobody to tell.
  Visit(Device* device, std::nothrow_t) noexcept : device_(device), before_(device ? device->current() : nullptr) {
    try {
      if (device_) device_->enter();
    } catch (const std::exception&) {
    }
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

// Device `number` of CUDA. Throws DeviceFailure that says what is missing: the driver, the device, its age.
std::shared_ptr<Device> open_cuda(int number);
// How many CUDA devices there are; 0 without a driver.
int count_cuda();

// Host memory in place of a device. A module's image is the path of a shared library whose functions
// `void name(const Launch*)` run a launch; with an empty path every function exists and does nothing.
std::shared_ptr<Device> open_null();
// Whether the calling thread was left with one in use.
bool uses_null();
// For tests: what a driver would keep of null devices' memory from now on.
void null_keeps(uint64_t bytes);

}  // namespace stoker::gpu
