// SPDX-License-Identifier: Apache-2.0
// From an axis to the taps of each output position. Every expression here keeps Pillow's order of operations and its
// types (the region passes through float), because the last bit of a weight decides the rounding of a pixel.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "resample.hpp"
#include "xmath.hpp"

namespace stoker::resample {

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
// DALI: sigma = radius / (2 sqrt 2) and the window is cut at 2 sqrt 2 sigma = radius; with x in units of the radius
// exp(-x^2 / (2 sigma^2)) = exp(-4 x^2). DALI interpolates a table of 65 entries; this is the function itself.
struct Gaussian {
  static double at(double x) { return x > -1.0 && x < 1.0 ? xm::exp(-4.0 * (x * x)) : 0.0; }
};

inline double support(Filter f) {
  switch (f) {
    case Filter::Box: case Filter::Nearest: return 0.5;
    case Filter::Cubic: return 2.0;
    case Filter::Lanczos3: return 3.0;
    default: return 1.0;
  }
}

}  // namespace filters

// A checked axis.
struct Window {
  int64_t in = 0, out = 0;
  double lo = 0, scale = 1;
  double stretch = 1;  // by how much the filter is widened
  double support = 0;
  int64_t max_taps = 0;
  Filter filter = Filter::Nearest;
  bool mirrored = false;
  bool whole = false;     // the whole input at its own size: Pillow leaves out such a pass
  bool integral = false;  // pixels are only picked, one to one: Pillow crops when both axes are like this
};

inline bool make_window(const Axis& axis, Window& w) {
  constexpr int64_t kMaxSize = INT32_MAX;
  if (!std::isfinite(axis.lo) || !std::isfinite(axis.hi) || axis.filter > Filter::Hamming) return false;
  if (axis.in_size > kMaxSize || axis.out_size > kMaxSize) return false;
  w = Window{};
  w.in = std::max<int64_t>(axis.in_size, 0);
  w.out = std::max<int64_t>(axis.out_size, 0);
  w.filter = axis.filter;
  w.mirrored = axis.lo > axis.hi;
  if (w.in == 0 || w.out == 0) return true;
  const double size = static_cast<double>(w.in);
  const auto lo = static_cast<float>(std::clamp(std::min(axis.lo, axis.hi), 0.0, size));
  const auto hi = static_cast<float>(std::clamp(std::max(axis.lo, axis.hi), 0.0, size));
  const float extent = hi - lo;
  w.lo = lo;
  w.scale = static_cast<double>(extent) / static_cast<double>(w.out);
  const bool antialias = axis.antialias || axis.filter == Filter::Triangular;
  w.stretch = antialias && w.scale > 1.0 ? w.scale : 1.0;
  w.support = filters::support(w.filter) * w.stretch;
  w.max_taps = w.filter == Filter::Nearest ? 1 : std::min<int64_t>(w.in, int64_t(std::ceil(2 * w.support)) + 1);
  const bool same_size = extent == static_cast<float>(w.out);
  // The last condition only matters beyond 2^24 pixels, where a float no longer holds every position.
  w.integral = same_size && lo == std::floor(lo) && static_cast<int64_t>(lo) + w.out <= w.in;
  w.whole = w.out == w.in && lo == 0 && hi == static_cast<float>(w.out);
  // 2^40 weights would not fit into any memory; refusing here keeps every later product far from overflow.
  return w.out * (w.max_taps + 4) < (int64_t{1} << 40);
}

// Which source positions each output reads: from start[i], count[i] of them. Outputs are numbered as they appear,
// mirroring included. Returns the largest count. A count of zero means that nothing is under the filter: the result
// is zero.
inline int32_t find_taps(const Window& w, int32_t* start, int32_t* count) {
  int32_t most = 0;
  if (w.filter == Filter::Nearest) {
    double at = w.lo + w.scale * 0.5;  // Pillow walks by adding the step; multiplying would now and then differ
    for (int64_t i = 0; i < w.out; ++i, at += w.scale) {
      const int64_t o = w.mirrored ? w.out - 1 - i : i;
      const auto first = static_cast<int64_t>(at);
      start[o] = static_cast<int32_t>(std::min(first, w.in - 1));
      count[o] = first < w.in;
    }
    return 1;
  }
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t o = w.mirrored ? w.out - 1 - i : i;
    const double center = w.lo + (static_cast<double>(i) + 0.5) * w.scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - w.support + 0.5));
    const int64_t last = std::min<int64_t>(w.in, static_cast<int64_t>(center + w.support + 0.5));
    start[o] = static_cast<int32_t>(std::min(first, w.in - 1));
    count[o] = static_cast<int32_t>(std::max<int64_t>(0, last - first));
    most = std::max(most, count[o]);
  }
  return most;
}

// Calls visit(output, weights) for every output of a filter other than Nearest. The weights lie in `room`: count[o] of
// them, which sum to one unless all are zero, and then zeros up to `padded`.
template <class Kernel, class Visit>
void each_weights(const Window& w, const int32_t* start, const int32_t* count, double* room, int64_t padded,
                  Visit&& visit) {
  const double inverse = 1.0 / w.stretch;
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t o = w.mirrored ? w.out - 1 - i : i;
    const double center = w.lo + (static_cast<double>(i) + 0.5) * w.scale;
    const int32_t n = count[o];
    for (int32_t t = 0; t < n; ++t) room[t] = Kernel::at((static_cast<double>(t + start[o]) - center + 0.5) * inverse);
    for (int64_t t = n; t < padded; ++t) room[t] = 0.0;
    double sum = 0.0;
    for (int32_t t = 0; t < n; ++t) sum += room[t];
    if (sum != 0.0)
      for (int32_t t = 0; t < n; ++t) room[t] /= sum;
    visit(o, room);
  }
}

// The same for up to four taps and a filter that is cheap to evaluate: with a fixed count the compiler uses vectors.
// Adding zeros and dividing them changes nothing.
template <class Kernel, class Visit>
void each_four_weights(const Window& w, const int32_t* start, const int32_t* count, double* room, Visit&& visit) {
  const double inverse = 1.0 / w.stretch;
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t o = w.mirrored ? w.out - 1 - i : i;
    const double center = w.lo + (static_cast<double>(i) + 0.5) * w.scale;
    double value[4];
    for (int32_t t = 0; t < 4; ++t) {
      const double at = Kernel::at((static_cast<double>(t + start[o]) - center + 0.5) * inverse);
      value[t] = t < count[o] ? at : 0.0;
    }
    const double sum = ((value[0] + value[1]) + value[2]) + value[3];
    const double divisor = sum != 0.0 ? sum : 1.0;
    for (int t = 0; t < 4; ++t) room[t] = value[t] / divisor;
    visit(o, room);
  }
}

template <class Visit>
void find_weights(const Window& w, const int32_t* start, const int32_t* count, double* room, int64_t padded,
                  Visit&& visit) {
  switch (w.filter) {
    case Filter::Linear: case Filter::Triangular:
      if (padded == 4) return each_four_weights<filters::Linear>(w, start, count, room, visit);
      return each_weights<filters::Linear>(w, start, count, room, padded, visit);
    case Filter::Cubic:
      if (padded == 4) return each_four_weights<filters::Cubic>(w, start, count, room, visit);
      return each_weights<filters::Cubic>(w, start, count, room, padded, visit);
    case Filter::Lanczos3: return each_weights<filters::Lanczos3>(w, start, count, room, padded, visit);
    case Filter::Gaussian: return each_weights<filters::Gaussian>(w, start, count, room, padded, visit);
    case Filter::Box: return each_weights<filters::Box>(w, start, count, room, padded, visit);
    case Filter::Hamming: return each_weights<filters::Hamming>(w, start, count, room, padded, visit);
    case Filter::Nearest: return;
  }
}

}  // namespace stoker::resample
