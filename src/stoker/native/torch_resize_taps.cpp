// SPDX-License-Identifier: Apache-2.0
// The scheme of weights is that of ATen's UpSampleKernel.cpp: doubles, normalised, then scaled to 16 bits.
#include "torch_resize_taps.hpp"

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

double value(Filter filter, double x) {
  switch (filter) {
    case Filter::Bilinear: x = std::fabs(x); return x < 1.0 ? 1.0 - x : 0.0;
    case Filter::Bicubic: {
      constexpr double a = -0.5;
      x = std::fabs(x);
      if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
      return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
    }
    case Filter::Lanczos: return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
  }
  return 0.0;
}

int64_t reach(Filter filter) { return filter == Filter::Bilinear ? 2 : filter == Filter::Bicubic ? 4 : 6; }

}  // namespace

Taps::Taps(Filter filter, int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double half = static_cast<double>(reach(filter)) * 0.5, support = scale >= 1.0 ? half * scale : half;
  const double inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
  const int64_t room = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  std::vector<double> weights(static_cast<size_t>(out * room));
  std::vector<int64_t> size(static_cast<size_t>(out));
  start.resize(static_cast<size_t>(out));
  double largest = 0.0;
  for (int64_t i = 0; i < out; ++i) {
    const double center = scale * (static_cast<double>(i) + 0.5);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t count =
        std::clamp<int64_t>(std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), in) - first, 0, room);
    double* w = weights.data() + i * room;
    double total = 0.0;
    for (int64_t j = 0; j < count; ++j) {
      w[j] = value(filter, (static_cast<double>(j + first) - center + 0.5) * inverse);
      total += w[j];
    }
    for (int64_t j = 0; j < count && total != 0.0; ++j) {
      w[j] /= total;
      largest = std::max(largest, w[j]);
    }
    start[static_cast<size_t>(i)] = static_cast<int32_t>(first);
    size[static_cast<size_t>(i)] = count;
    most = std::max(most, (count + 1) / 2);
  }
  while (precision < 22 && static_cast<int>(0.5 + largest * (1 << (precision + 1))) < (1 << 15)) ++precision;
  pairs.resize(static_cast<size_t>(out * most));
  for (int64_t i = 0; i < out; ++i)
    for (int64_t j = 0; j < size[static_cast<size_t>(i)]; ++j) {
      const double v = weights[static_cast<size_t>(i * room + j)] * (1 << precision);
      const auto fixed = static_cast<uint16_t>(static_cast<int16_t>(v < 0 ? -0.5 + v : 0.5 + v));
      int32_t& pair = pairs[static_cast<size_t>(i * most + j / 2)];
      pair |= static_cast<int32_t>(static_cast<uint32_t>(fixed) << (j % 2 ? 16 : 0));
    }
}

}  // namespace stoker::torch_resize
