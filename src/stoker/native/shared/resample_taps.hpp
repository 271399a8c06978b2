// SPDX-License-Identifier: Apache-2.0
// One axis of a resampling: which source positions an output reads, and their weights. Plain C++ that compiles for the
// CPU and for a GPU. Every expression keeps Pillow's order of operations and its types (the region passes through
// float), because the last bit of a weight decides the rounding of a pixel.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shared/xmath.hpp"

namespace stoker::resample {

// The Python side relies on the order of the enumerators.
enum class Filter : uint8_t {
  Nearest = 0,
  Linear,      // Pillow BILINEAR, DALI LINEAR
  Cubic,       // Keys, a = -0.5: Pillow BICUBIC, DALI CUBIC
  Lanczos3,    // Pillow LANCZOS
  Triangular,  // Linear that always stretches its support when it shrinks
  Gaussian,    // DALI GAUSSIAN: exp(-4 (x/r)^2) for |x| < r, with r = max(scale, 1)
  Box,
  Hamming,
};

namespace filters {

constexpr double kPi = 3.14159265358979323846;

struct Box {
  static double at(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};
struct Linear {
  static double at(double x) {
    x = x < 0 ? -x : x;
    return x < 1.0 ? 1.0 - x : 0.0;
  }
};
struct Cubic {
  static double at(double x) {
    constexpr double a = -0.5;
    x = x < 0 ? -x : x;
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
  }
};
struct Hamming {
  static double at(double x) {
    x = x < 0 ? -x : x;
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x *= kPi;
    return xm::sin(x) / x * (0.54f + 0.46f * xm::cos(x));  // the float constants are Pillow's
  }
};
struct Lanczos3 {
  static double sinc(double x) {
    if (x == 0.0) return 1.0;
    x *= kPi;
    return xm::sin(x) / x;
  }
  static double at(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }
};
// DALI uses sigma = radius / (2 sqrt 2) and cuts the window at 2 sqrt 2 sigma = radius. With x in units of the radius
// exp(-x^2 / (2 sigma^2)) = exp(-4 x^2). DALI interpolates a table of 65 entries; this is the function itself.
struct Gaussian {
  static double at(double x) { return x > -1.0 && x < 1.0 ? xm::exp(-4.0 * (x * x)) : 0.0; }
};

}  // namespace filters

// Validated parameters of one axis.
struct Window {
  int64_t in = 0, out = 0;
  double lo = 0, scale = 1;
  double stretch = 1;  // factor by which the filter is widened
  double support = 0;
  int64_t max_taps = 0;
  Filter filter = Filter::Nearest;
  bool mirrored = false;
  bool whole = false;     // the whole input at its own size: Pillow skips such a pass
  bool integral = false;  // pixels are copied one to one: Pillow crops if both axes are like this
};

// Source positions that an output reads.
struct Taps {
  int32_t start, count;  // a count of zero: the filter covers no position, and the result is zero
};

inline double center_of(const Window& w, int64_t i) { return w.lo + (static_cast<double>(i) + 0.5) * w.scale; }

// Return the taps of output i, before mirroring. Not for Nearest.
inline Taps taps_of(const Window& w, int64_t i) {
  const double center = center_of(w, i);
  const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - w.support + 0.5));
  const int64_t last = std::min<int64_t>(w.in, static_cast<int64_t>(center + w.support + 0.5));
  return {static_cast<int32_t>(std::min(first, w.in - 1)), static_cast<int32_t>(std::max<int64_t>(0, last - first))};
}

// Return the one pixel that Nearest picks at position `at`. Callers compute `at` by adding up steps, as Pillow does; a
// multiplication would sometimes round differently.
inline Taps pick_at(const Window& w, double at) {
  const auto first = static_cast<int64_t>(at);
  return {static_cast<int32_t>(std::min(first, w.in - 1)), first < w.in ? 1 : 0};
}

// Weights of one output before the division by their sum.
template <class Kernel>
struct Weigher {
  double inverse, center;
  Weigher(const Window& w, int64_t i) : inverse(1.0 / w.stretch), center(center_of(w, i)) {}
  double at(int32_t position) const { return Kernel::at((static_cast<double>(position) - center + 0.5) * inverse); }
};

// Write the weights of output i. They sum to one unless all are zero.
template <class Kernel>
inline void weigh(const Window& w, int64_t i, Taps taps, double* weight) {
  const Weigher<Kernel> weigher(w, i);
  for (int32_t t = 0; t < taps.count; ++t) weight[t] = weigher.at(t + taps.start);
  double sum = 0.0;
  for (int32_t t = 0; t < taps.count; ++t) sum += weight[t];
  if (sum != 0.0)
    for (int32_t t = 0; t < taps.count; ++t) weight[t] /= sum;
}

constexpr int kWeightBits = 22;  // of the fixed-point weights of 8-bit pixels

inline int32_t to_fixed(double w) {
  w *= double{1 << kWeightBits};
  return static_cast<int32_t>(w + (w < 0 ? -0.5 : 0.5));
}

// Convert a fixed-point sum, which starts at kFixedHalf, to a pixel.
constexpr uint32_t kFixedHalf = uint32_t{1} << (kWeightBits - 1);

inline uint8_t from_fixed(uint32_t sum) {
  return static_cast<uint8_t>(std::clamp(static_cast<int32_t>(sum) >> kWeightBits, 0, 255));
}

// Saturate before converting: the conversion of a double that does not fit is undefined.
template <class T>
inline T from_double(double v) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(v);
  } else {
    v = std::min(std::max(v, double{std::numeric_limits<T>::min()}), double{std::numeric_limits<T>::max()});
    if constexpr (std::is_same_v<T, int32_t>) return static_cast<int32_t>(v >= 0.0 ? v + 0.5 : v - 0.5);
    constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: round half to even
    return static_cast<T>(static_cast<int32_t>((v + kShift) - kShift));
  }
}

}  // namespace stoker::resample
