// SPDX-License-Identifier: Apache-2.0
// Colour arithmetic of recipes: Pillow's, to the last bit.
#include <algorithm>
#include <cmath>

#include "recipe.hpp"

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
