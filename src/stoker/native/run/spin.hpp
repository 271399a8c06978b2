// SPDX-License-Identifier: Apache-2.0
// Short waits without sleep.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker {

// Spin for some microseconds. After 20 of them, let other threads run in between. Return whether it was done.
template <class F>
bool spin_briefly(F done, int microseconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  while (!done()) {
    const auto spent = Clock::now() - start;
    if (spent >= std::chrono::microseconds(microseconds)) return false;
    if (spent >= std::chrono::microseconds(20)) {
      std::this_thread::yield();
      continue;
    }
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
  return true;
}

// Spin briefly before sleeping: waking a thread costs more than a small batch takes. `longer` counts the latest waits
// for which spinning was too short: after several of them, one in sixteen begins with spinning.
template <class F>
void spin_until(F done, std::atomic<uint32_t>* longer, int microseconds = 20) {
  const uint32_t count = longer->load(std::memory_order_relaxed);
  const bool is_short = (count < 8 || count % 16 == 0) && spin_briefly(done, microseconds);
  longer->store(is_short ? 0 : count + 1, std::memory_order_relaxed);
}

}  // namespace stoker
