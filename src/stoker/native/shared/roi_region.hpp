// SPDX-License-Identifier: Apache-2.0
// Positions of the samples of regions of interest, in the steps of torchvision's kernels, for the CPU and for GPUs.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stoker::roi {

// Samples of one region, and along one axis of it: more would be a coordinate that is wrong.
constexpr double kMostSamples = 1 << 24, kMostAlong = 1 << 20;

// Numbers that all regions of a call share.
struct Rule {
  double scale = 1;
  int64_t height = 1, width = 1;  // bins
  int64_t samples = 0;            // per bin and axis; 0 or less: as many as the bin has pixels, rounded up
  bool aligned = false;
};

// One region: its first sample, and the extents of its bins in pixels.
template <class T>
struct Region {
  T y, x, bin_height, bin_width;
  double rows, columns;  // samples per bin

  Region() = default;
  // `numbers`: the number of the feature map, x0, y0, x1, y1.
  Region(const T numbers[5], const Rule& rule) {
    const T scale = static_cast<T>(rule.scale), offset = rule.aligned ? T(0.5) : T(0);
    x = numbers[1] * scale - offset;
    y = numbers[2] * scale - offset;
    T wide = numbers[3] * scale - offset - x;
    T high = numbers[4] * scale - offset - y;
    if (!rule.aligned) {
      wide = std::max(wide, T(1));
      high = std::max(high, T(1));
    }
    bin_height = high / static_cast<T>(rule.height);
    bin_width = wide / static_cast<T>(rule.width);
    const auto given = static_cast<double>(rule.samples);
    rows = rule.samples > 0 ? given : std::max(0.0, static_cast<double>(std::ceil(bin_height)));
    columns = rule.samples > 0 ? given : std::max(0.0, static_cast<double>(std::ceil(bin_width)));
  }
  double samples(const Rule& rule) const {
    return std::max(rows, 1.0) * static_cast<double>(rule.height) * std::max(columns, 1.0) *
           static_cast<double>(rule.width);
  }
  bool has_possible_samples(const Rule& rule) const {
    return samples(rule) <= kMostSamples && std::max(rows, 1.0) * static_cast<double>(rule.height) <= kMostAlong &&
           std::max(columns, 1.0) * static_cast<double>(rule.width) <= kMostAlong;
  }
};

// Neighbours of a sample along one axis.
template <class T>
struct Tap {
  int64_t low, high;  // low < 0: the sample is outside
  T lower, upper;     // weights
};

// Neighbours of sample `i` of `samples` in bin `b`.
template <class T>
inline Tap<T> tap_of(T start, T bin, int64_t b, int64_t i, int64_t samples, int64_t extent) {
  T at = start + static_cast<T>(b) * bin + static_cast<T>(static_cast<float>(i) + .5f) * bin / static_cast<T>(samples);
  if (!(at >= T(-1) && at <= static_cast<T>(extent))) return {-1, -1, T(0), T(0)};
  if (at <= T(0)) at = T(0);
  int64_t low = static_cast<int64_t>(at), high = low + 1;
  if (low >= extent - 1) {
    low = high = extent - 1;
    at = static_cast<T>(low);
  }
  const T upper = at - static_cast<T>(low);
  return {low, high, static_cast<T>(1. - static_cast<double>(upper)), upper};
}

// Pixels of a bin of roi_pool along an axis.
struct Range {
  int64_t begin, end;
};

template <class T>
inline Range range_of(int64_t start, int64_t size, int64_t bin, int64_t bins, int64_t extent) {
  const T step = static_cast<T>(size) / static_cast<T>(bins);
  const auto begin = static_cast<int64_t>(std::floor(static_cast<T>(bin) * step)) + start;
  const auto end = static_cast<int64_t>(std::ceil(static_cast<T>(bin + 1) * step)) + start;
  const int64_t none = 0;
  return {std::min(std::max(begin, none), extent), std::min(std::max(end, none), extent)};
}

}  // namespace stoker::roi
