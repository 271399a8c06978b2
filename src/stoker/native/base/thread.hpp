// SPDX-License-Identifier: Apache-2.0
// Start of native threads. Every thread starts here, so that tests can make a start fail.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace stoker {

// Thrown when the operating system refuses to start a thread.
class ThreadStartFailed : public std::runtime_error {
 public:
  ThreadStartFailed(int wanted, int started, const std::string& why)
      : std::runtime_error("`num_threads`: expected to start " + std::to_string(wanted) + " threads, got " +
                           std::to_string(started) + " before the operating system refused one (" + why +
                           "); none of them runs. Lower `num_threads`, or raise the limit: of processes and threads "
                           "(`ulimit -u`, a container's pids limit) or of memory (`ulimit -v`)") {}
};

// For tests: number of threads that may still start before a start fails; negative: no limit.
inline std::atomic<int64_t> thread_starts_left{-1};

// Throws std::system_error or std::bad_alloc.
template <class F>
std::thread start_thread(F body) {
  int64_t left = thread_starts_left.load();
  while (left >= 0) {
    if (left == 0) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    if (thread_starts_left.compare_exchange_weak(left, left - 1)) break;
  }
  return std::thread(std::move(body));
}

// Threads that start together, all or none, and are joined together.
class ThreadGroup {
 public:
  bool empty() const { return threads_.empty(); }  // also false after `join`

  // Start `count` threads that run `body(number)`. If one cannot start, the started ones end without running `body`,
  // ThreadStartFailed is thrown, and `start` may be called again.
  template <class F>
  void start(int count, F body) {
    const auto gate = std::make_shared<std::atomic<Gate>>(Gate::Closed);
    std::vector<std::thread> started;
    const auto open = [&gate](Gate outcome) {
      gate->store(outcome);
      gate->notify_all();
    };
    try {
      started.reserve(static_cast<size_t>(count));
      for (int i = 0; i < count; ++i)
        started.push_back(start_thread([gate, body, i] {
          gate->wait(Gate::Closed);
          if (gate->load() == Gate::Open) body(i);
        }));
    } catch (const std::exception& error) {
      open(Gate::Cancelled);
      for (std::thread& thread : started) thread.join();
      throw ThreadStartFailed(count, static_cast<int>(started.size()), error.what());
    }
    threads_ = std::move(started);
    open(Gate::Open);
  }

  // Wait until all threads have ended. Several threads may call it repeatedly; each of them waits.
  void join() {
    const std::lock_guard<std::mutex> hold(joining_);
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

 private:
  enum class Gate : uint8_t { Closed, Open, Cancelled };
  std::mutex joining_;
  std::vector<std::thread> threads_;
};

}  // namespace stoker
