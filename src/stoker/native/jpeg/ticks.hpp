// SPDX-License-Identifier: Apache-2.0
// Profile of a decode by phase, for benchmarks. The clock is read only on request.
#pragma once
#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace stoker::jpeg {

// Ticks of the time-stamp counter, which runs at the processor's nominal clock; nanoseconds on other machines.
inline uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

struct Ticks {
  uint64_t tables = 0;     // Huffman tables, quantisers, and set-up
  uint64_t entropy = 0;    // unstuffing and entropy decoding
  uint64_t transform = 0;  // inverse DCT
  uint64_t rows = 0;       // upsampling, colour conversion, storing
};

// Stopwatch that adds the time since the last lap to one of the sums.
class Laps {
 public:
  explicit Laps(Ticks* to) : to_(to), last_(to ? ticks_now() : 0) {}
  void lap(uint64_t Ticks::* sum) {
    if (!to_) return;
    const uint64_t now = ticks_now();
    to_->*sum += now - last_;
    last_ = now;
  }

 private:
  Ticks* to_;
  uint64_t last_;
};

}  // namespace stoker::jpeg
