// SPDX-License-Identifier: Apache-2.0
// A pixel depends on the one before, so vectors hold the channels of one pixel. They are the compiler's, of eight
// elements, which every processor has.
#include "raster/unfilter.hpp"

#include <bit>
#include <cstring>

namespace stoker::raster {
namespace {

typedef uint8_t Bytes __attribute__((vector_size(8)));
typedef int16_t Words __attribute__((vector_size(16)));

// Read a pixel by one access, which may include bytes after it.
template <int kPixel>
inline Bytes load(const uint8_t* p) {
  uint64_t word;
  if constexpr (kPixel == 1) {
    word = *p;
  } else if constexpr (kPixel == 2) {
    uint16_t half;
    std::memcpy(&half, p, sizeof half);
    word = half;
  } else if constexpr (kPixel <= 4) {
    uint32_t part;
    std::memcpy(&part, p, sizeof part);
    word = part;
  } else {
    std::memcpy(&word, p, sizeof word);
  }
  return std::bit_cast<Bytes>(word);
}

template <class T>
inline void store_part(uint8_t* p, uint64_t word) {
  const T part = static_cast<T>(word);
  std::memcpy(p, &part, sizeof part);
}

// Write the bytes of a pixel and no others, since the next pixel has not been read.
template <int kPixel>
inline void store(uint8_t* p, Bytes x) {
  const auto word = std::bit_cast<uint64_t>(x);
  if constexpr (kPixel == 1) *p = static_cast<uint8_t>(word);
  else if constexpr (kPixel <= 3) store_part<uint16_t>(p, word);
  else if constexpr (kPixel <= 6) store_part<uint32_t>(p, word);
  else store_part<uint64_t>(p, word);
  if constexpr (kPixel == 3) p[2] = static_cast<uint8_t>(word >> 16);
  if constexpr (kPixel == 6) store_part<uint16_t>(p + 4, word >> 32);
}
inline Words widen(Bytes x) { return __builtin_convertvector(x, Words); }
inline Bytes narrow(Words x) { return __builtin_convertvector(x, Bytes); }

void up(uint8_t* row, const uint8_t* above, size_t size) {
  for (size_t i = 0; i < size; ++i) row[i] = static_cast<uint8_t>(row[i] + above[i]);
}

template <int kPixel>
void sub(uint8_t* row, size_t size) {
  Bytes left{};
  for (size_t i = 0; i < size; i += kPixel) {
    left += load<kPixel>(row + i);
    store<kPixel>(row + i, left);
  }
}

template <int kPixel>
void average(uint8_t* row, const uint8_t* above, size_t size) {
  Words left{};
  for (size_t i = 0; i < size; i += kPixel) {
    const Bytes pixel = load<kPixel>(row + i) + narrow((left + widen(load<kPixel>(above + i))) >> 1);
    store<kPixel>(row + i, pixel);
    left = widen(pixel);
  }
}

inline Words magnitude(Words x) {
  const Words negative = -x;
  return x > negative ? x : negative;
}

template <int kPixel>
void paeth(uint8_t* row, const uint8_t* above, size_t size) {
  Words a{}, c{};  // left, and above left
  for (size_t i = 0; i < size; i += kPixel) {
    const Words b = widen(load<kPixel>(above + i));
    const Words across = b - c, down = a - c;  // distances of a and b from the prediction a + b - c
    const Words from_a = magnitude(across), from_b = magnitude(down), from_c = magnitude(across + down);
    const Words nearer = from_b <= from_c ? b : c;
    const Words best = (from_a <= from_b) & (from_a <= from_c) ? a : nearer;
    const Bytes pixel = load<kPixel>(row + i) + narrow(best);
    store<kPixel>(row + i, pixel);
    a = widen(pixel);
    c = b;
  }
}

template <int kPixel>
void unfilter_pixels(int filter, uint8_t* row, const uint8_t* above, size_t size) {
  switch (filter) {
    case 1: return sub<kPixel>(row, size);
    case 2: return up(row, above, size);
    case 3: return average<kPixel>(row, above, size);
    case 4: return paeth<kPixel>(row, above, size);
    default: return;
  }
}

}  // namespace

void unfilter(int filter, uint8_t* row, const uint8_t* above, size_t size, int pixel) {
  switch (pixel) {
    case 1: return unfilter_pixels<1>(filter, row, above, size);
    case 2: return unfilter_pixels<2>(filter, row, above, size);
    case 3: return unfilter_pixels<3>(filter, row, above, size);
    case 4: return unfilter_pixels<4>(filter, row, above, size);
    case 6: return unfilter_pixels<6>(filter, row, above, size);
    default: return unfilter_pixels<8>(filter, row, above, size);
  }
}

}  // namespace stoker::raster
