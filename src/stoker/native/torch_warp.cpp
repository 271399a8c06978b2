// SPDX-License-Identifier: Apache-2.0
#include "torch_warp.hpp"

#include <algorithm>
#include <cmath>

#include "fused.hpp"
#include "simd.hpp"

namespace stoker::torch_warp {

namespace {

constexpr int64_t kMaxChannels = 3;

struct Point {
  float x, y;
};

template <bool kHardware>
[[gnu::always_inline]] inline Point look(const Grid& g, float x, float y) {
  const float* m = g.m;
  const float u = fused<kHardware>(y, m[1], x * m[0]) + m[2], v = fused<kHardware>(y, m[4], x * m[3]) + m[5];
  if (!g.projective) return {u, v};
  const float w = fused<kHardware>(y, m[7], x * m[6]) + 1.0f;
  return {u / w - 1.0f, v / w - 1.0f};
}

[[gnu::always_inline]] inline uint8_t byte(float v) {
  const float whole = std::nearbyint(v);
  return static_cast<uint8_t>(whole > 0.0f ? (whole < 255.0f ? whole : 255.0f) : 0.0f);  // NaN: 0
}

// A neighbour: its weight, and its address, or null if it is outside.
struct Neighbour {
  const uint8_t* p;
  float weight;
};

[[gnu::always_inline]] inline const uint8_t* at(const View& src, float x, float y) {
  if (!(x > -1.0f && x < static_cast<float>(src.shape[1]) && y > -1.0f && y < static_cast<float>(src.shape[0])))
    return nullptr;
  return src.data + static_cast<int64_t>(y) * src.stride[0] + static_cast<int64_t>(x) * src.stride[1];
}

template <bool kHardware>
[[gnu::always_inline]] inline void linear(const View& src, float x, float y, const Fill& fill, uint8_t* to) {
  const float left = std::floor(x), top = std::floor(y);
  const float w = x - left, e = 1.0f - w, n = y - top, s = 1.0f - n;
  const Neighbour near[4] = {{at(src, left, top), e * s},
                             {at(src, left + 1.0f, top), w * s},
                             {at(src, left, top + 1.0f), e * n},
                             {at(src, left + 1.0f, top + 1.0f), w * n}};
  const auto sum = [&](auto&& value) __attribute__((always_inline)) {
    float total = value(near[0].p) * near[0].weight;
    for (int i = 1; i < 4; ++i) total = fused<kHardware>(value(near[i].p), near[i].weight, total);
    return total;
  };
  const float mask = fill.has ? sum([](const uint8_t* p) { return p ? 1.0f : 0.0f; }) : 1.0f;
  for (int64_t c = 0; c < src.shape[2]; ++c) {
    const int64_t channel = c * src.stride[2];
    const float v = sum([&](const uint8_t* p) { return p ? static_cast<float>(p[channel]) : 0.0f; });
    to[c] = byte(fill.has ? (v - fill.value[c]) * mask + fill.value[c] : v);
  }
}

[[gnu::always_inline]] inline void nearest(const View& src, float x, float y, const Fill& fill, uint8_t* to) {
  const uint8_t* p = at(src, std::nearbyint(x), std::nearbyint(y));
  for (int64_t c = 0; c < src.shape[2]; ++c) to[c] = p ? p[c * src.stride[2]] : fill.has ? byte(fill.value[c]) : 0;
}

template <bool kHardware, bool kLinear>
[[gnu::always_inline]] inline void rows(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  const float half_width = static_cast<float>(src.shape[1]) / 2, half_height = static_cast<float>(src.shape[0]) / 2;
  const auto middle = [&](int i) { return g.projective ? 0.5 : (1.0 - static_cast<double>(dst.shape[i])) * 0.5; };
  const float x0 = static_cast<float>(middle(1)), y0 = static_cast<float>(middle(0));
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    const float* given = g.given ? g.given + 2 * j * dst.shape[1] : nullptr;
    for (int64_t i = 0; i < dst.shape[1]; ++i, to += dst.stride[1]) {
      const Point p = given ? Point{given[2 * i], given[2 * i + 1]}
                            : look<kHardware>(g, static_cast<float>(i) + x0, static_cast<float>(j) + y0);
      const float x = fused<kHardware>(p.x + 1.0f, half_width, -0.5f), y = fused<kHardware>(p.y + 1.0f, half_height, -0.5f);
      if constexpr (kLinear) linear<kHardware>(src, x, y, fill, to);
      else nearest(src, x, y, fill, to);
    }
  }
}

template <bool kLinear>
void rows_plain(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<false, kLinear>(src, g, fill, dst);
}

#if defined(__x86_64__)
template <bool kLinear>
__attribute__((target("avx2,fma"))) void rows_avx2(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<true, kLinear>(src, g, fill, dst);
}
#endif

template <bool kLinear>
void run(const View& src, const Grid& g, const Fill& fill, const View& dst) {
#if defined(__x86_64__)
  if ((isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma"))
    return rows_avx2<kLinear>(src, g, fill, dst);
#endif
  rows_plain<kLinear>(src, g, fill, dst);
}

}  // namespace

bool sample(const View& src, const Grid& grid, bool linear, const Fill& fill, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != DType::U8 || dst.dtype != DType::U8) return false;
  if (src.shape[2] != dst.shape[2] || src.shape[2] > kMaxChannels || dst.stride[2] != 1) return false;
  if (src.elements() == 0 || std::max(src.shape[0], src.shape[1]) > 1 << 24) return false;
  linear ? run<true>(src, grid, fill, dst) : run<false>(src, grid, fill, dst);
  return true;
}

}  // namespace stoker::torch_warp
