// SPDX-License-Identifier: Apache-2.0
// Pillow's colour arithmetic for one pixel, equal to the last bit. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stoker::recipe {

// convert("L") of a pixel whose channels are `step` bytes apart.
inline uint8_t luma(const uint8_t* p, int64_t step) {
  return static_cast<uint8_t>((p[0] * 19595 + p[step] * 38470 + p[2 * step] * 7471 + 0x8000) >> 16);
}

// Blend of one value, computed in float and truncated.
inline uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  if (factor >= 0 && factor <= 1) return static_cast<uint8_t>(value);
  if (!(value > 0)) return 0;  // also for NaN
  return value >= 255 ? 255 : static_cast<uint8_t>(value);
}

// The grey value that ImageEnhance.Contrast blends with: the rounded mean of `pixels` luma values.
inline int mean_of(int64_t sum, int64_t pixels) {
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
}

// A value smoothed by (1 1 1, 1 5 1, 1 1 1) / 13, added in Pillow's order; the neighbours are `down` and `step` bytes
// away.
inline int smoothed(const uint8_t* p, int64_t down, int64_t step) {
  constexpr float edge = 1.0f / 13.0f, middle = 5.0f / 13.0f;
  const auto line = [&](const uint8_t* q, float m) {
    return static_cast<float>(q[-step]) * edge + static_cast<float>(q[0]) * m + static_cast<float>(q[step]) * edge;
  };
  const float sum = ((0.5f + line(p + down, edge)) + line(p, middle)) + line(p - down, edge);
  return static_cast<int>(std::clamp(sum, 0.0f, 255.0f));
}

inline uint8_t clipped(int x) { return static_cast<uint8_t>(std::clamp(x, 0, 255)); }

// Round half away from zero; `v` is not negative.
inline int rounded(double v) {
  const int whole = static_cast<int>(v);
  return whole + (v - whole >= 0.5);
}

// Conversion of one pixel to HSV and back, in the same mix of float and double as Pillow.
inline void hsv_of_rgb(const uint8_t rgb[3], uint8_t hsv[3]) {
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

inline void rgb_of_hsv(const uint8_t hsv[3], uint8_t rgb[3]) {
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
  for (int c = 0; c < 3; ++c) rgb[c] = of[sector % 6][c];
}

}  // namespace stoker::recipe
