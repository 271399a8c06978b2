// SPDX-License-Identifier: Apache-2.0
// Colour arithmetic of recipes: Pillow's, to the last bit.
#include <algorithm>
#include <cmath>

#include "recipe.hpp"
#include "simd.hpp"

namespace stoker::recipe {

namespace {

uint8_t clipped(int x) { return static_cast<uint8_t>(std::clamp(x, 0, 255)); }

// Half away from zero, of what is not negative.
int rounded(double v) {
  const int whole = static_cast<int>(v);
  return whole + (v - whole >= 0.5);
}

}  // namespace

uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  if (factor >= 0 && factor <= 1) return static_cast<uint8_t>(value);
  if (!(value > 0)) return 0;  // NaN, too
  return value >= 255 ? 255 : static_cast<uint8_t>(value);
}

namespace {

// Smoothed by (1 1 1, 1 5 1, 1 1 1) / 13, then blended with; in the order of Pillow's sums.
template <bool kClip>
[[gnu::always_inline]] inline void sharpen_bytes(const uint8_t* __restrict row, int64_t down, int64_t step,
                                                 int64_t count, float factor, uint8_t* __restrict to) {
  constexpr float edge = 1.0f / 13.0f, middle = 5.0f / 13.0f;
  for (int64_t i = step; i < count - step; ++i) {
    const auto line = [&](const uint8_t* q, float m) __attribute__((always_inline)) {
      return static_cast<float>(q[-step]) * edge + static_cast<float>(q[0]) * m + static_cast<float>(q[step]) * edge;
    };
    const uint8_t* p = row + i;
    const float sum = ((0.5f + line(p + down, edge)) + line(p, middle)) + line(p - down, edge);
    const int smooth = static_cast<int>(std::clamp(sum, 0.0f, 255.0f));
    float value = static_cast<float>(smooth) + factor * static_cast<float>(int{*p} - smooth);
    if (kClip) value = value > 0.0f ? (value < 255.0f ? value : 255.0f) : 0.0f;  // NaN: 0
    to[i] = static_cast<uint8_t>(static_cast<int>(value));
  }
}

#if defined(__x86_64__)
template <bool kClip>
__attribute__((target("avx2"))) void sharpen_avx2(const uint8_t* row, int64_t down, int64_t step, int64_t count,
                                                  float factor, uint8_t* to) {
  sharpen_bytes<kClip>(row, down, step, count, factor, to);
}
#endif

}  // namespace

void sharpen_row(const uint8_t* row, int64_t down, int64_t step, int64_t count, float factor, uint8_t* to) {
  const bool within = factor >= 0 && factor <= 1;
#if defined(__x86_64__)
  if (isa() == Isa::AVX2 || isa() == Isa::AVX512)
    return within ? sharpen_avx2<false>(row, down, step, count, factor, to)
                  : sharpen_avx2<true>(row, down, step, count, factor, to);
#endif
  within ? sharpen_bytes<false>(row, down, step, count, factor, to)
         : sharpen_bytes<true>(row, down, step, count, factor, to);
}

void hsv_of_rgb(const uint8_t rgb[3], uint8_t hsv[3]) {
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  const int most = std::max(r, std::max(g, b)), least = std::min(r, std::min(g, b));
  hsv[2] = static_cast<uint8_t>(most);
  if (most == least) {
    hsv[0] = hsv[1] = 0;
    return;
  }
  const float range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const float red = static_cast<float>(most - r) / range;
  const float green = static_cast<float>(most - g) / range;
  const float blue = static_cast<float>(most - b) / range;
  float hue;
  if (r == most) hue = blue - green;
  else if (g == most) hue = static_cast<float>(2.0 + red - blue);
  else hue = static_cast<float>(4.0 + green - red);
  const double turns = hue / 6.0 + 1.0;
  hue = static_cast<float>(turns - std::floor(turns));  // the remainder of 1, exactly
  hsv[0] = clipped(static_cast<int>(hue * 255.0));
  hsv[1] = clipped(static_cast<int>(saturation * 255.0));
}

void rgb_of_hsv(const uint8_t hsv[3], uint8_t rgb[3]) {
  const float value = hsv[2];
  if (hsv[1] == 0) {
    rgb[0] = rgb[1] = rgb[2] = hsv[2];
    return;
  }
  const float hue = hsv[0];
  const int sector = static_cast<int>(hue * 6.0 / 255.0);
  const float rest = static_cast<float>(hue * 6.0 / 255.0 - static_cast<float>(sector));
  const float saturation = static_cast<float>(static_cast<float>(hsv[1]) / 255.0);
  const uint8_t p = clipped(rounded(value * (1.0 - saturation)));
  const uint8_t q = clipped(rounded(value * (1.0 - saturation * rest)));
  const uint8_t t = clipped(rounded(value * (1.0 - saturation * (1.0 - rest))));
  const uint8_t v = hsv[2];
  const uint8_t of[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy(of[sector % 6], of[sector % 6] + 3, rgb);
}

}  // namespace stoker::recipe
