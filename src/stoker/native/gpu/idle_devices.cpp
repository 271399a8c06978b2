// SPDX-License-Identifier: Apache-2.0
#include "gpu/idle_devices.hpp"

#include <unistd.h>

#include <utility>

#include "base/thread.hpp"

namespace stoker::gpu {

IdleDevices::IdleDevices() : pid_(::getpid()) {}

IdleDevices::~IdleDevices() { end(); }

IdleDevices& IdleDevices::of_process() {
  static auto& devices = *new IdleDevices;
  return devices;
}

std::unique_ptr<ReusableDevice> IdleDevices::take(int number, unsigned multiprocessors) {
  if (::getpid() != pid_) return nullptr;
  std::vector<std::unique_ptr<ReusableDevice>> failed;  // closed without the lock
  std::lock_guard<std::mutex> hold(mutex_);
  for (size_t i = idle_.size(); i-- > 0;) {
    const ReusableDevice& idle = *idle_[i].device;
    if (idle.number() != number || idle.multiprocessors() != multiprocessors) continue;
    std::unique_ptr<ReusableDevice> device = std::move(idle_[i].device);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    if (device->prepare_for_reuse()) return device;
    failed.push_back(std::move(device));
  }
  return nullptr;
}

void IdleDevices::put(std::unique_ptr<ReusableDevice> device) noexcept {
  if (::getpid() != pid_ || device->separate_allocations || !device->prepare_for_reuse()) return;
  std::unique_ptr<ReusableDevice> surplus;  // closed without the lock
  std::thread ended;
  try {
    std::lock_guard<std::mutex> hold(mutex_);
    if (ended_) return;
    if (!watches_) {
      ended = std::exchange(thread_, start_thread([this] { close_late(); }));
      watches_ = true;
    }
    idle_.reserve(kMost + 1);
    const auto seconds = std::chrono::duration_cast<Clock::duration>(seconds_);
    idle_.push_back({std::move(device), Clock::now() + seconds});
    if (idle_.size() > kMost) {
      surplus = std::move(idle_.front().device);
      idle_.erase(idle_.begin());
    }
  } catch (const std::exception&) {
    // There is no memory, or no thread that would close the device, so it is closed now.
  }
  if (ended.joinable()) ended.join();
}

void IdleDevices::close_late() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_ && !idle_.empty()) {
    if (const Clock::time_point end = idle_.front().end; Clock::now() < end) {
      changed_.wait_until(lock, end);
      continue;
    }
    std::unique_ptr<ReusableDevice> late = std::move(idle_.front().device);
    idle_.erase(idle_.begin());
    lock.unlock();
    late.reset();
    lock.lock();
  }
  watches_ = false;
}

bool IdleDevices::close_now() noexcept {
  if (::getpid() != pid_) return false;
  std::vector<Idle> closed;
  std::lock_guard<std::mutex> hold(mutex_);
  closed.swap(idle_);
  changed_.notify_all();
  return !closed.empty();
}

void IdleDevices::set_seconds(Seconds seconds) noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  seconds_ = seconds;
}

void IdleDevices::end() noexcept {
  if (::getpid() != pid_) return;
  std::vector<Idle> closed;
  std::thread thread;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    ended_ = true;
    closed.swap(idle_);
    thread.swap(thread_);
    changed_.notify_all();
  }
  if (thread.joinable()) thread.join();
}

}  // namespace stoker::gpu
