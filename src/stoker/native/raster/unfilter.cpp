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

// A pixel waits for the one before it, so what counts is the number of dependent operations: values stay words, whose
// upper halves are cleared by one of them.
template <int kPixel>
void average(uint8_t* row, const uint8_t* above, size_t size) {
  if constexpr (kPixel == 1) {  // without vectors, which a byte would have to be moved to and from
    int left = 0;
    for (size_t i = 0; i < size; ++i) {
      left = (row[i] + ((left + above[i]) >> 1)) & 255;
      row[i] = static_cast<uint8_t>(left);
    }
    return;
  }
  Words left{};
  for (size_t i = 0; i < size; i += kPixel) {
    left = (widen(load<kPixel>(row + i)) + ((left + widen(load<kPixel>(above + i))) >> 1)) & 255;
    store<kPixel>(row + i, narrow(left));
  }
}

// Of a (left), b (above) and c (above left) the filter takes the one nearest to a + b - c, in doubt a, then b. With low
// and high as the smaller and the larger one of a and b, that is low if high <= 3 c - a - b, high if low >= 3 c - a - b,
// otherwise c. If both hold, low = high = c, and a sum of both differences from c is right. To compare distances, as the
// definition does, takes twice as many dependent operations.
template <int kPixel>
void paeth(uint8_t* row, const uint8_t* above, size_t size) {
  Words a{}, c{};
  for (size_t i = 0; i < size; i += kPixel) {
    const Words b = widen(load<kPixel>(above + i)), coded = widen(load<kPixel>(row + i)) + c;
    const Words limit = 3 * c - b - a, low = a < b ? a : b, high = a < b ? b : a;
    a = (coded + ((high <= limit) & (low - c)) + ((low >= limit) & (high - c))) & 255;
    store<kPixel>(row + i, narrow(a));
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
