// SPDX-License-Identifier: Apache-2.0
// Elements of an image as keys of their order, and the division of an image's elements over blocks. A thread computes one
// element at a time.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

namespace order {

constexpr int64_t kBlock = 1024;  // elements of a block; also in ops/image/_windows.py

// Unsigned integers in the order of an element's type, as in filter/order.cpp.
template <class Memory, bool kFloats>
struct Keys {
  static constexpr int kBytes = sizeof(Memory);
  using Key = std::conditional_t<kBytes == 1, uint8_t, std::conditional_t<kBytes == 2, uint16_t, uint32_t>>;
  static constexpr Key kTop = static_cast<Key>(Key{1} << (8 * kBytes - 1)), kAll = static_cast<Key>(~Key{0});
  static constexpr bool kSigned = !kFloats && static_cast<Memory>(-1) < static_cast<Memory>(0);

  static Key load(const uint8_t* p) {
    const Key bits = *reinterpret_cast<const Key*>(p);
    if constexpr (kFloats) return static_cast<Key>(bits ^ (bits & kTop ? kAll : kTop));
    else if constexpr (kSigned) return static_cast<Key>(bits ^ kTop);
    else return bits;
  }
  static void store(uint8_t* p, Key key) {
    Key bits = key;
    if constexpr (kFloats) bits = static_cast<Key>(key ^ (key & kTop ? kTop : kAll));
    else if constexpr (kSigned) bits = static_cast<Key>(key ^ kTop);
    *reinterpret_cast<Key*>(p) = bits;
  }
};

template <class E>
using KeysOf = Keys<typename E::Memory, std::is_same_v<E, F16> || std::is_same_v<E, BF16> || std::is_same_v<E, F32>>;

// Position of an element.
struct Place {
  int64_t f, y, x, c;
};

template <class Visit>
inline void each_element(const Image& image, uint32_t block, Visit&& visit) {
  const int64_t count = image.frames * image.height * image.width * image.channels;
  const int64_t begin = block * kBlock, end = begin + kBlock < count ? begin + kBlock : count;
  for (int64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
    // Neighbouring threads have neighbouring elements: channels vary first if they are contiguous, or last.
    Place at;
    int64_t rest = i;
    const auto take = [&](int64_t extent) {
      const int64_t whole = quotient(rest, extent), part = rest - whole * extent;
      rest = whole;
      return part;
    };
    if (image.inner) at.c = take(image.channels);
    at.x = take(image.width);
    at.y = take(image.height);
    if (!image.inner) at.c = take(image.channels);
    at.f = rest;
    visit(i, at);
  }
}

inline uint8_t* address(const Image& image, const Place& at) {
  return image.data + at.f * image.frame + at.y * image.row + at.x * image.column + at.c * image.channel;
}

}  // namespace order

}  // namespace stoker::own
