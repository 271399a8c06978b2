// SPDX-License-Identifier: Apache-2.0
// Computation of the taps of all outputs of an axis, as the CPU stores them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "resample/resample.hpp"
#include "shared/resample_taps.hpp"

namespace stoker::resample {

namespace filters {

inline double support(Filter f) {
  switch (f) {
    case Filter::Box:
    case Filter::Nearest: return 0.5;
    case Filter::Cubic: return 2.0;
    case Filter::Lanczos3: return 3.0;
    default: return 1.0;
  }
}

}  // namespace filters

struct Region {
  double lo, hi;
};

// Return the region lo..hi of an axis. It may exceed the image if the centre of every output lies inside, so that every
// output has a pixel near its centre. Otherwise it is clamped to the image.
inline Region reachable(double lo, double hi, int64_t in, int64_t out) {
  constexpr double kFar = 0x1p30;  // a float holds such numbers, and sums with the support of a filter fit an integer
  const double size = static_cast<double>(in), half = (hi - lo) / (2 * static_cast<double>(out));
  if (lo > -kFar && hi < kFar && lo + half >= 0 && hi - half < size) return {lo, hi};
  return {std::clamp(lo, 0.0, size), std::clamp(hi, 0.0, size)};
}

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
  const Region region = reachable(std::min(axis.lo, axis.hi), std::max(axis.lo, axis.hi), w.in, w.out);
  const auto lo = static_cast<float>(region.lo), hi = static_cast<float>(region.hi);
  const float extent = hi - lo;
  w.lo = lo;
  w.scale = static_cast<double>(extent) / static_cast<double>(w.out);
  const bool antialias = axis.antialias || axis.filter == Filter::Triangular;
  w.stretch = antialias && w.scale > 1.0 ? w.scale : 1.0;
  w.support = filters::support(w.filter) * w.stretch;
  w.max_taps = w.filter == Filter::Nearest ? 1 : std::min<int64_t>(w.in, int64_t(std::ceil(2 * w.support)) + 1);
  const bool same_size = extent == static_cast<float>(w.out);
  // The last condition only matters beyond 2^24 pixels, where a float no longer represents every position.
  w.integral = same_size && lo == std::floor(lo) && static_cast<int64_t>(lo) + w.out <= w.in;
  w.whole = w.out == w.in && lo == 0 && hi == static_cast<float>(w.out);
  // 2^40 weights would not fit into any memory; the limit keeps all later products far from overflow.
  return w.out * (w.max_taps + 4) < (int64_t{1} << 40);
}

// Find the source positions of each output: count[i] positions from start[i] on. Outputs are numbered in their final
// order, mirroring included. Return the largest count.
inline int32_t find_taps(const Window& w, int32_t* start, int32_t* count) {
  int32_t most = 0;
  const auto set = [&](int64_t i, Taps taps) {
    const int64_t o = w.mirrored ? w.out - 1 - i : i;
    start[o] = taps.start;
    count[o] = taps.count;
    most = std::max(most, taps.count);
  };
  if (w.filter == Filter::Nearest) {
    double at = w.lo + w.scale * 0.5;
    for (int64_t i = 0; i < w.out; ++i, at += w.scale) set(i, pick_at(w, at));
    return 1;
  }
  for (int64_t i = 0; i < w.out; ++i) set(i, taps_of(w, i));
  return most;
}

// Call visit(output, weights) for every output of a filter other than Nearest. `room` receives count[o] weights, which
// sum to one unless all are zero, followed by zeros up to `padded`.
template <class Kernel, class Visit>
void each_weights(const Window& w, const int32_t* start, const int32_t* count, double* room, int64_t padded,
                  Visit&& visit) {
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t o = w.mirrored ? w.out - 1 - i : i;
    weigh<Kernel>(w, i, {start[o], count[o]}, room);
    for (int64_t t = count[o]; t < padded; ++t) room[t] = 0.0;
    visit(o, room);
  }
}

// The same for up to four taps and a filter that is cheap to evaluate: with a fixed count the compiler vectorizes the
// loop. The additional zeros do not change a sum or a quotient.
template <class Kernel, class Visit>
void each_four_weights(const Window& w, const int32_t* start, const int32_t* count, double* room, Visit&& visit) {
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t o = w.mirrored ? w.out - 1 - i : i;
    const Weigher<Kernel> weigher(w, i);
    double value[4];
    for (int32_t t = 0; t < 4; ++t) {
      const double at = weigher.at(t + start[o]);
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
    case Filter::Linear:
    case Filter::Triangular:
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
