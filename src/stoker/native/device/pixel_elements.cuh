// SPDX-License-Identifier: Apache-2.0
// Elements of decoded pixels: bytes, these over the full range of uint16, or as float32 from 0 to 1.
#pragma once
#include "shared/device.cuh"

namespace stoker::gpu {

template <class T>
STOKER_DEVICE T element_of(uint32_t level) {
  if constexpr (sizeof(T) == 4) return static_cast<float>(level) * static_cast<float>(1.0 / 255);
  else if constexpr (sizeof(T) == 2) return static_cast<T>(257 * level);
  else return static_cast<T>(level);
}

// Return the byte that an element was made from.
template <class T>
STOKER_DEVICE uint32_t level_of(T element) {
  if constexpr (sizeof(T) == 4) return static_cast<uint32_t>(element * 255.0f + 0.5f);
  else if constexpr (sizeof(T) == 2) return element >> 8;
  else return element;
}

// Four elements, stored together.
template <class T>
struct alignas(4 * sizeof(T)) FourElements {
  T element[4];
};

// Store four elements that are made from the bytes of a word, to an address that is a multiple of their size.
template <class T>
STOKER_DEVICE void store_elements(T* to, uint32_t levels) {
  FourElements<T> four;
  STOKER_UNROLL for (int i = 0; i < 4; ++i) four.element[i] = element_of<T>(levels >> 8 * i & 255);
  *reinterpret_cast<FourElements<T>*>(to) = four;
}
template <>
STOKER_DEVICE void store_elements(uint8_t* to, uint32_t levels) {
  *reinterpret_cast<uint32_t*>(to) = levels;
}

}  // namespace stoker::gpu
