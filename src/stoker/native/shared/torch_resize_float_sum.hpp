// SPDX-License-Identifier: Apache-2.0
// Order in which torch adds weighted values when it resizes floats (torch/resize_float.hpp). Plain C++ that compiles
// for the CPU and for a GPU. For `kHardware` see fused.hpp.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared/fused.hpp"

namespace stoker::torch_resize {

// Smooth is antialias=True. With antialias=False torch filters one axis after the other (Apart) or, for linear, both
// together (Together). The choice depends on torch's release, the number of channels, the size and whether torch uses
// one thread. Rounded equals Apart in torch 2.9, whose compiler fused fewer of the products that make the weights; the
// order of the additions is the same.
enum class Way : int { Smooth = 0, Apart, Together, Rounded };

// Smooth: torch vectorizes sums over taps four by four. It rounds the first product and those of whole groups of four
// before it adds them, up to this tap, and fuses the others.
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

// Sum along one axis: of two or four values, the product of the second is rounded before it is added.
template <bool kHardware, class Value>
STOKER_INLINED inline float sharp_sum(const float* w, int64_t count, Value&& value) {
  float sum = fused<kHardware>(value(0), w[0], value(1) * w[1]);
  for (int64_t j = 2; j < count; ++j) sum = fused<kHardware>(value(j), w[j], sum);
  return sum;
}

// Sum over two rows and two columns together, with products of their weights.
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
