// SPDX-License-Identifier: Apache-2.0
// Open devices between the pipelines of a process. To open a device, load its kernels and page-lock memory takes longer
// than a small pipeline runs, so a released device stays open for some seconds and serves the next pipeline.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/device.hpp"

namespace stoker::gpu {

// Device that may serve one owner after the other. Loaded kernels and spare memory stay with the device.
class ReusableDevice : public Device {
 public:
  virtual unsigned multiprocessors() const = 0;  // as in `open_cuda`
  // Prepare the device for another owner. Return false if there may be none: a call has failed, or work is in flight.
  virtual bool prepare_for_reuse() noexcept = 0;
};

// Thread-safe. A forked child finds no devices, and touches no lock that another thread of its parent may have held.
class IdleDevices {
 public:
  using Seconds = std::chrono::duration<double>;
  static constexpr Seconds kSeconds{10};
  static constexpr size_t kMost = 4;  // idle devices; more are closed

  IdleDevices();
  ~IdleDevices();
  IdleDevices(const IdleDevices&) = delete;
  IdleDevices& operator=(const IdleDevices&) = delete;
  // Those of the process. They are never destroyed: the last device may be released after static objects have ended.
  static IdleDevices& of_process();

  // Return the device that was released last; null if there is none.
  std::unique_ptr<ReusableDevice> take(int number, unsigned multiprocessors);
  // Keep a released device, or close it.
  void put(std::unique_ptr<ReusableDevice> device) noexcept;
  // Close all idle devices. Return false if there were none.
  bool close_now() noexcept;
  // Set the time after which idle devices are closed, for those that are released from now on.
  void set_seconds(Seconds seconds) noexcept;
  // Close all idle devices, and those that are released later without delay. For the end of the process.
  void end() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Idle {
    std::unique_ptr<ReusableDevice> device;
    Clock::time_point end;
  };
  void close_late();

  const int pid_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Idle> idle_;  // in the order of their release
  Seconds seconds_ = kSeconds;
  bool ended_ = false;
  std::thread thread_;    // closes devices; ends when none is idle
  bool watches_ = false;  // the thread will see a change
};

}  // namespace stoker::gpu
