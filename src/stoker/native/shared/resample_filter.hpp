// SPDX-License-Identifier: Apache-2.0
// Windowed sinc of the audio resampler in double: the CPU computes weights with it (signal/resampler.cpp), and a GPU those
// of rows with rates of their own.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared/xmath.hpp"

namespace stoker::signal {

// The modified Bessel function of the first kind, of order 0. From the first term on that does not change the sum, none
// does: terms that are smaller than the sum only decrease.
inline double bessel(double x) {
  const double quarter = x * x / 4;
  double sum = 1, term = 1;
  for (int k = 1; k < 64; ++k) {
    term = term * quarter / (static_cast<double>(k) * k);
    const double next = sum + term;
    if (next == sum) break;
    sum = next;
  }
  return sum;
}

// A windowed sinc over `half` inputs to each side, which passes frequencies up to `cutoff` times half the input's rate.
struct SincShape {
  double half, cutoff;
  double beta, bottom;  // of Kaiser's window, and bessel(beta)
  bool hann;            // Hann's window instead

  double at(double x) const {
    const double from = x < 0 ? -x : x;
    if (from >= half) return 0;
    const double y = x / half;
    const double window = hann ? 0.5 * (1 + xm::cos_pi(y)) : bessel(beta * std::sqrt(1 - y * y)) / bottom;
    const double z = cutoff * x;
    return cutoff * (z == 0 ? 1 : xm::sin_pi(z) / (3.14159265358979323846 * z)) * window;
  }
  // Value of tap k of a phase, before the weights of a phase are scaled to a sum of 1.
  double tap(int64_t k, int64_t before, int64_t phase, int64_t phases) const {
    return at(static_cast<double>(k - before) - static_cast<double>(phase) / static_cast<double>(phases));
  }
  // Factor of the weights of a phase.
  double scale(double sum) const { return hann ? 1 : 1 / sum; }  // a constant stays the same
};

}  // namespace stoker::signal
