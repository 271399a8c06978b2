// SPDX-License-Identifier: Apache-2.0
// How torch adds up weighted values where it resizes floats (torch_resize_float.hpp): plain C++ that compiles for the CPU and
// for a GPU. `kHardware`: see fused.hpp.
#pragma once
#include <cmath>
#include <cstdint>

#include "fused.hpp"

namespace stoker::torch_resize {

// antialias=True, or False: one axis after the other, or (linear) both together. Which of these torch does depends on its
// release, the number of channels, the size and whether it has one thread. Rounded is Apart in a build (2.9's) whose
// compiler fused fewer of the products that weights are made of; what is added up with them is the same.
enum class Way : int { Smooth = 0, Apart, Together, Rounded };

// Smooth: sums over taps are vectorised four by four. The first product, then whole fours of which products are rounded
// before they are added, up to this tap; the others are fused.
inline int64_t rounded_taps(int64_t count) { return 1 + (count - 1) / 4 * 4; }

template <bool kHardware, class Value>
STOKER_INLINED inline float smooth_sum(const float* w, int64_t count, Value&& value) {
  const int64_t rounded = rounded_taps(count);
  float sum = value(0) * w[0];
  int64_t j = 1;
  for (; j < rounded; ++j) sum += value(j) * w[j];
  for (; j < count; ++j) sum = fused<kHardware>(value(j), w[j], sum);
  return sum;
}

// Else one axis after the other: of two or four values the second's product is rounded.
template <bool kHardware, class Value>
STOKER_INLINED inline float sharp_sum(const float* w, int64_t count, Value&& value) {
  float sum = fused<kHardware>(value(0), w[0], value(1) * w[1]);
  for (int64_t j = 2; j < count; ++j) sum = fused<kHardware>(value(j), w[j], sum);
  return sum;
}

// Or two rows and two columns together, with products of their weights.
template <bool kHardware, class Value>
STOKER_INLINED inline float joint_sum(const float* down, const float* across, Value&& value) {
  float sum = fused<kHardware>(value(0, 0), down[0] * across[0], value(0, 1) * (down[0] * across[1]));
  sum = fused<kHardware>(value(1, 0), down[1] * across[0], sum);
  return fused<kHardware>(value(1, 1), down[1] * across[1], sum);
}

STOKER_INLINED inline uint8_t rounded_byte(float v) {
  v = v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f;
  return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(v)));
}

}  // namespace stoker::torch_resize
