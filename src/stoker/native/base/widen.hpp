// SPDX-License-Identifier: Apache-2.0
// Bytes of pixels in the wider types of decoders: uint16 over the full range, float32 from 0 to 1.
#pragma once
#include <cstdint>

#include "base/elements.hpp"
#include "base/simd.hpp"

namespace stoker {

template <class T>
inline T widened(uint8_t x) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(x) * static_cast<float>(1.0 / 255);
  else return static_cast<T>(257 * x);
}

template <class T>
inline void widen_plain(const uint8_t* __restrict from, int64_t count, uint8_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) store_element(to + static_cast<int64_t>(sizeof(T)) * i, widened<T>(from[i]));
}
template <class T>
STOKER_WIDE inline void widen_wide(const uint8_t* __restrict from, int64_t count, uint8_t* __restrict to) {
  for (int64_t i = 0; i < count; ++i) store_element(to + static_cast<int64_t>(sizeof(T)) * i, widened<T>(from[i]));
}

// Write `count` bytes as elements of type T to memory that does not overlap theirs.
template <class T>
inline void widen(const uint8_t* from, int64_t count, uint8_t* to) {
  if (has_wide()) return widen_wide<T>(from, count, to);
  widen_plain<T>(from, count, to);
}

}  // namespace stoker
