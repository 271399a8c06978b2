// SPDX-License-Identifier: Apache-2.0
// The weights follow ATen's UpSampleKernel.cpp: doubles, normalised, then scaled to 16 bits.
#include "torch/resize_taps.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stoker::torch_resize {

namespace {

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double cubic(double a, double x) {
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

double value(Filter filter, double x) {
  switch (filter) {
    case Filter::Bilinear: x = std::fabs(x); return x < 1.0 ? 1.0 - x : 0.0;
    case Filter::Bicubic: return cubic(-0.5, x);
    case Filter::Lanczos: return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
  }
  return 0.0;
}

int64_t reach(Filter filter) { return filter == Filter::Bilinear ? 2 : filter == Filter::Bicubic ? 4 : 6; }

// Taps of all outputs, with weights in double.
struct Contributions {
  explicit Contributions(int64_t out, int64_t max_taps)
      : max_taps(max_taps), weights(static_cast<size_t>(out * max_taps)), size(static_cast<size_t>(out)) {}
  int64_t max_taps;
  std::vector<double> weights;
  std::vector<int64_t> size;
  double largest = 0.0;
};

void read_smooth(Filter filter, int64_t in, double scale, double support, int64_t i, Contributions& contributions,
                 int32_t& start) {
  const double inverse = scale >= 1.0 ? 1.0 / scale : 1.0, center = scale * (static_cast<double>(i) + 0.5);
  const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
  const int64_t count = std::clamp<int64_t>(std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), in) - first,
                                            0, contributions.max_taps);
  double* w = contributions.weights.data() + i * contributions.max_taps;
  double total = 0.0;
  for (int64_t j = 0; j < count; ++j) {
    w[j] = value(filter, (static_cast<double>(j + first) - center + 0.5) * inverse);
    total += w[j];
  }
  for (int64_t j = 0; j < count && total != 0.0; ++j) {
    w[j] /= total;
    contributions.largest = std::max(contributions.largest, w[j]);
  }
  start = static_cast<int32_t>(first);
  contributions.size[static_cast<size_t>(i)] = count;
}

// Positions outside of the image add their weights to the edge. The largest weight is found while the weights are added
// up.
void read_sharp(Filter filter, int64_t in, double scale, int64_t i, Contributions& contributions, int32_t& start) {
  const bool linear = filter == Filter::Bilinear;
  const double at = scale * (static_cast<double>(i) + 0.5) - 0.5, real = linear ? std::max(at, 0.0) : at;
  const int64_t index = std::min(static_cast<int64_t>(std::floor(real)), in - 1), half = contributions.max_taps / 2;
  const double part = std::clamp(real - static_cast<double>(index), 0.0, 1.0);
  const int64_t first = index - half + 1, begin = std::max<int64_t>(first, 0);
  const int64_t count = std::clamp<int64_t>(std::min(index + half + 1, in) - begin, 0, contributions.max_taps);
  double* w = contributions.weights.data() + i * contributions.max_taps;
  for (int64_t j = 0, k = 0; j < contributions.max_taps; ++j, ++k) {
    if (first + j <= 0) k = 0;
    else if (first + j >= in - 1) k = count - 1;
    const double x = static_cast<double>(j + 1 - half) - part;
    w[k] += linear ? value(filter, x) : cubic(-0.75, x);
    contributions.largest = std::max(contributions.largest, w[k]);
  }
  start = static_cast<int32_t>(begin);
  contributions.size[static_cast<size_t>(i)] = count;
}

}  // namespace

Taps::Taps(Filter filter, bool smooth, int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double half = static_cast<double>(reach(filter)) * 0.5, support = scale >= 1.0 ? half * scale : half;
  Contributions contributions(out, smooth ? static_cast<int64_t>(std::ceil(support)) * 2 + 1 : reach(filter));
  start.resize(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    int32_t& begin = start[static_cast<size_t>(i)];
    if (smooth) read_smooth(filter, in, scale, support, i, contributions, begin);
    else read_sharp(filter, in, scale, i, contributions, begin);
    most = std::max(most, (contributions.size[static_cast<size_t>(i)] + 1) / 2);
  }
  while (precision < 22 && static_cast<int>(0.5 + contributions.largest * (1 << (precision + 1))) < (1 << 15))
    ++precision;
  pairs.resize(static_cast<size_t>(out * most));
  for (int64_t i = 0; i < out; ++i)
    for (int64_t j = 0; j < contributions.size[static_cast<size_t>(i)]; ++j) {
      const double v = contributions.weights[static_cast<size_t>(i * contributions.max_taps + j)] * (1 << precision);
      const auto fixed = static_cast<uint16_t>(static_cast<int16_t>(v < 0 ? -0.5 + v : 0.5 + v));
      int32_t& pair = pairs[static_cast<size_t>(i * most + j / 2)];
      pair |= static_cast<int32_t>(static_cast<uint32_t>(fixed) << (j % 2 ? 16 : 0));
    }
}

}  // namespace stoker::torch_resize
