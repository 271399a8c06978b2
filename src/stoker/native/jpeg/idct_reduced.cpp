// SPDX-License-Identifier: Apache-2.0
// libjpeg's reduced inverse transforms: their outputs are means of adjacent outputs of the 8-point transform.
#include "jpeg/idct_reduced.hpp"

#include <algorithm>
#include <cstring>

#include "shared/jpeg_arithmetic.cuh"

namespace stoker::jpeg {
namespace {

// Return whether the rows below the first that four outputs depend on are zero.
bool only_row(const int16_t* block) {
  const auto zero = [](int16_t v) { return v == 0; };
  return std::all_of(block + 8, block + 32, zero) && std::all_of(block + 40, block + 64, zero);
}

template <int kSize>
void reduced(int16_t* block, const uint8_t* ends, int count, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  constexpr int kShift = kSize == 4 ? kShift4 : kShift2;
  constexpr auto transform = kSize == 4 ? transform4 : transform2;
  for (int i = 0; i < count; ++i, block += 64, out += kSize) {
    if (ends[i] <= 1) {
      const int32_t dc = dequantised(block[0], quantiser[0]);
      const uint8_t sample = kSize == 4 ? flat_sample(dc) : flat_sample2(dc);
      for (int y = 0; y < kSize; ++y) std::memset(out + y * pitch, sample, kSize);
      block[0] = 0;
      continue;
    }
    const bool one_row = kSize == 4 && only_row(block);
    int32_t work[kSize][8];
    for (int x = 0; x < 8; ++x) {
      int32_t in[8], column[kSize];
      for (int y = 0; y < 8; ++y) in[y] = dequantised(block[8 * y + x], quantiser[8 * y + x]);
      if constexpr (kSize == 4) column4(in, one_row, column);
      else column2(in, x == 0, column);
      for (int y = 0; y < kSize; ++y) work[y][x] = column[y];
    }
    for (int y = 0; y < kSize; ++y) {
      int32_t row[kSize];
      transform(work[y], kShift + 7, row);
      for (int x = 0; x < kSize; ++x) out[y * pitch + x] = to_sample(row[x]);
    }
    std::memset(block, 0, 64 * sizeof *block);
  }
}

void means(int16_t* dc, const uint8_t*, int count, const int16_t* quantiser, uint8_t* out, ptrdiff_t) {
  for (int i = 0; i < count; ++i) {
    out[i] = mean_sample(dc[i], quantiser[0]);
    dc[i] = 0;
  }
}

}  // namespace

InverseDct reduced_dct(int size) { return size == 4 ? reduced<4> : size == 2 ? reduced<2> : means; }

}  // namespace stoker::jpeg
