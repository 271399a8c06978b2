// SPDX-License-Identifier: Apache-2.0
// The weights follow ATen's UpSampleKernel.cpp for floats, with the multiply-adds that its compiler fused.
#include "torch/resize_float_taps.hpp"

#include <algorithm>
#include <cmath>

#include "shared/fused.hpp"

namespace stoker::torch_resize {

namespace {

float fused(float a, float b, float c) { return fused_plain(a, b, c); }

// The multiply-adds that are fused.
enum class Fused { None, First, All };

float added(bool is_fused, float a, float b, float c) { return is_fused ? fused(a, b, c) : a * b + c; }

// The two branches of the cubic filter. With `First`, the last step of each branch is not fused.
float near(float a, float x, Fused which) {
  return added(which == Fused::All, added(which != Fused::None, a + 2.0f, x, -(a + 3.0f)) * x, x, 1.0f);
}
float far(float a, float x, Fused which) {
  const bool first = which != Fused::None;
  return added(which == Fused::All, added(first, added(first, a, x, -5.0f * a), x, 8.0f * a), x, -4.0f * a);
}

float smooth_value(Filter filter, float x) {
  if (filter == Filter::Bilinear) return x < 1.0f ? 1.0f - x : 0.0f;
  return x < 1.0f ? near(-0.5f, x, Fused::All) : x < 2.0f ? far(-0.5f, x, Fused::All) : 0.0f;
}

}  // namespace

FloatTaps::FloatTaps(Filter filter, Way way, int64_t in, int64_t out) {
  way == Way::Smooth ? smooth(filter, in, out) : sharp(filter, way == Way::Rounded, in, out);
}

void FloatTaps::smooth(Filter filter, int64_t in, int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out),
              reach = filter == Filter::Bilinear ? 1.0f : 2.0f;
  const float support = scale >= 1.0f ? reach * scale : reach, inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
  max_taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  index.resize(static_cast<size_t>(out));
  count.resize(static_cast<size_t>(out));
  weights.resize(static_cast<size_t>(out * max_taps));
  for (int64_t i = 0; i < out; ++i) {
    // ATen's halves are doubles, and so are the sums and the product that contain them.
    const float center = scale * (static_cast<float>(i) + 0.5f);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(static_cast<double>(center - support) + 0.5), 0);
    const int64_t end = std::min<int64_t>(static_cast<int64_t>(static_cast<double>(center + support) + 0.5), in);
    const int64_t n = std::clamp<int64_t>(end - first, 0, max_taps);
    float* w = weights.data() + i * max_taps;
    float total = 0.0f;
    for (int64_t j = 0; j < n; ++j) {
      const auto from_center = static_cast<double>(static_cast<float>(j + first) - center) + 0.5;
      w[j] = smooth_value(filter, std::fabs(static_cast<float>(from_center * static_cast<double>(inverse))));
      total += w[j];
    }
    for (int64_t j = 0; j < n && total != 0.0f; ++j) w[j] /= total;
    index[static_cast<size_t>(i)] = static_cast<int32_t>(std::min(first, in - 1));
    count[static_cast<size_t>(i)] = static_cast<int32_t>(std::max<int64_t>(n, 1));
  }
}

void FloatTaps::sharp(Filter filter, bool rounded, int64_t in, int64_t out) {
  const bool linear = filter == Filter::Bilinear;
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  max_taps = linear ? 2 : 4;
  index.resize(static_cast<size_t>(out * max_taps));
  weights.resize(static_cast<size_t>(out * max_taps));
  for (int64_t i = 0; i < out; ++i) {
    const float at = added(!(rounded && linear), scale, static_cast<float>(i) + 0.5f, -0.5f);
    const float real = linear ? std::max(at, 0.0f) : at;
    const int64_t here = linear && in == out ? i : std::min(static_cast<int64_t>(std::floor(real)), in - 1);
    const float part = linear && in == out ? 0.0f : std::clamp(real - static_cast<float>(here), 0.0f, 1.0f);
    const float rest = 1.0f - part;
    float* w = weights.data() + i * max_taps;
    for (int64_t j = 0; j < max_taps; ++j)
      index[static_cast<size_t>(i * max_taps + j)] =
          static_cast<int32_t>(std::clamp<int64_t>(here + j - (linear ? 0 : 1), 0, in - 1));
    if (linear) {
      w[0] = rest;
      w[1] = part;
      continue;
    }
    const Fused which = rounded ? Fused::None : Fused::First;
    w[0] = far(-0.75f, part + 1.0f, which);
    w[1] = near(-0.75f, part, which);
    w[2] = near(-0.75f, rest, which);
    w[3] = far(-0.75f, rest + 1.0f, which);
  }
}

}  // namespace stoker::torch_resize
