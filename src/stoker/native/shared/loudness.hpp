// SPDX-License-Identifier: Apache-2.0
// Loudness of ITU-R BS.1770-4, for the CPU and for GPUs.
//
// A signal is cut into segments of four hops. The filters of a segment begin with zeros, 200 ms before it: what came
// earlier has decayed below the rounding of a double (the slowest pole is at 38 Hz with a quality of 0.5: exp(-239 t)).
// So segments do not wait for each other: the CPU takes several at a time, and a GPU's thread takes one.
#pragma once
#include <cstdint>

#include "shared/fused.hpp"
#include "shared/xmath.hpp"

namespace stoker::loudness {

constexpr double kBlock = 0.4, kHop = 0.1, kWarmUp = 0.2;  // seconds
constexpr double kRounding = 1e-9;                         // of a quotient that is a whole number
constexpr int64_t kHops = 4;                               // of a block, and of a segment
constexpr double kAbsoluteGate = -70, kRelativeGate = -10;

// Filter of second order.
struct Biquad {
  double b0, b1, b2, a1, a2;
};

inline double tangent(double hz, double rate) {
  const double turn = 3.14159265358979323846 * hz / rate;
  return xm::sin(turn) / xm::cos(turn);
}

// The first filter of the standard (the head's shelf), whose analog form gives the table for 48 kHz at any rate.
inline Biquad shelf(double rate) {
  constexpr double kGain = 3.999843853973347, kQ = 0.7071752369554196;
  const double k = tangent(1681.974450955533, rate);
  const double high = xm::exp(kGain / 20 * 2.302585092994046), band = xm::exp(xm::log(high) * 0.4996667741545416);
  const double a0 = 1 + k / kQ + k * k;
  return {(high + band * k / kQ + k * k) / a0, 2 * (k * k - high) / a0, (high - band * k / kQ + k * k) / a0,
          2 * (k * k - 1) / a0, (1 - k / kQ + k * k) / a0};
}

// The second one, which removes low frequencies.
inline Biquad high_pass(double rate) {
  constexpr double kQ = 0.5003270373238773;
  const double k = tangent(38.13547087602444, rate), a0 = 1 + k / kQ + k * k;
  return {1, -2, 1, 2 * (k * k - 1) / a0, (1 - k / kQ + k * k) / a0};
}

// Hops and blocks of a signal.
struct Meter {
  double rate;
  int64_t samples, blocks, hops, segments, warm_up;
  Biquad first, second;

  Meter(double rate_hz, int64_t count)
      : rate(rate_hz), samples(count), first(shelf(rate_hz)), second(high_pass(rate_hz)) {
    const double size = kBlock * rate, n = static_cast<double>(samples);
    // A clip that is shorter than a block is one block.
    const double whole = (n - size) / (kHop * rate) + kRounding;
    blocks = n < size || whole < 0 ? 1 : static_cast<int64_t>(whole) + 1;
    hops = blocks + kHops - 1;
    segments = (hops + kHops - 1) / kHops;
    warm_up = static_cast<int64_t>(kWarmUp * rate);
  }
  // First sample of a hop.
  int64_t edge(int64_t hop) const {
    const auto at = static_cast<int64_t>(kHop * static_cast<double>(hop) * rate);
    return at < samples ? at : samples;
  }
  // Samples that the sum of a block has.
  double block_samples() const {
    const double size = kBlock * rate, n = static_cast<double>(samples);
    return size < n ? size : n;
  }
};

// State of both filters. `T`: double, or a vector of them.
template <class T>
struct Weighting {
  T s[4] = {};
  STOKER_INLINED T operator()(const Meter& m, T x) {
    const Biquad &a = m.first, &b = m.second;
    const T y = a.b0 * x + s[0];
    s[0] = a.b1 * x - a.a1 * y + s[1];
    s[1] = a.b2 * x - a.a2 * y;
    const T z = b.b0 * y + s[2];
    s[2] = b.b1 * y - b.a1 * z + s[3];
    s[3] = b.b2 * y - b.a2 * z;
    return z;
  }
};

inline double channel_weight(int64_t channel) { return channel < 3 ? 1.0 : 1.41; }

inline double lufs(double power) {
  return power > 0 ? -0.691 + 10 / 2.302585092994046 * xm::log(power) : -xm::detail::infinity();
}

// Return the loudness of the mean power of blocks that are louder than -70 LUFS, and then of those that are louder than
// 10 LU below that. `levels`: the loudness of the blocks.
inline double gated(const double* powers, const double* levels, int64_t blocks) {
  double gate = kAbsoluteGate, found = 0;
  for (int round = 0; round < 2; ++round) {
    double total = 0;
    int64_t count = 0;
    for (int64_t j = 0; j < blocks; ++j) {
      if (!(levels[j] > gate) && !(powers[j] != powers[j])) continue;
      total += powers[j];
      ++count;
    }
    found = count ? lufs(total / static_cast<double>(count)) : -xm::detail::infinity();
    if (total != total) return total;  // NaN
    gate = found + kRelativeGate > kAbsoluteGate ? found + kRelativeGate : kAbsoluteGate;
  }
  return found;
}

}  // namespace stoker::loudness
