// SPDX-License-Identifier: Apache-2.0
// Colour operations of recipes in Pillow's arithmetic, equal to the last bit.
#include <algorithm>
#include <cmath>

#include "base/simd.hpp"
#include "recipe/recipe.hpp"

namespace stoker::recipe {

namespace {

// Smooth by (1 1 1, 1 5 1, 1 1 1) / 13, added in Pillow's order, then blend.
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

template <bool kClip>
STOKER_WIDE void sharpen_wide(const uint8_t* row, int64_t down, int64_t step, int64_t count, float factor,
                              uint8_t* to) {
  sharpen_bytes<kClip>(row, down, step, count, factor, to);
}

}  // namespace

void sharpen_row(const uint8_t* row, int64_t down, int64_t step, int64_t count, float factor, uint8_t* to) {
  const bool within = factor >= 0 && factor <= 1;
  if (has_wide())
    return within ? sharpen_wide<false>(row, down, step, count, factor, to)
                  : sharpen_wide<true>(row, down, step, count, factor, to);
  within ? sharpen_bytes<false>(row, down, step, count, factor, to)
         : sharpen_bytes<true>(row, down, step, count, factor, to);
}

}  // namespace stoker::recipe
