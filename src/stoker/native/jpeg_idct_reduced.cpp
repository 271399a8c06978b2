// SPDX-License-Identifier: Apache-2.0
// libjpeg's reduced inverse transforms: their outputs are means of neighbours in the 8-point transform's output.
#include "jpeg_idct_reduced.hpp"

#include <algorithm>
#include <cstring>

namespace stoker::jpeg {
namespace {

// Sums are modulo 2^32: only damaged files wrap.
uint32_t u(int32_t v) { return static_cast<uint32_t>(v); }

int32_t descale(uint32_t v, int shift) { return static_cast<int32_t>(v + (1u << (shift - 1))) >> shift; }
uint8_t sample(int32_t v) { return static_cast<uint8_t>(std::clamp(v, -128, 127) + 128); }

// Inputs 0 1 2 3 5 6 7 of an 8-point column or row (4 does not matter) to 4 outputs.
void transform4(const int32_t* x, int shift, int32_t* out) {
  const uint32_t t0 = u(x[0]) << 14, t2 = u(x[2]) * 15137 - u(x[6]) * 6270;
  const uint32_t p = u(x[5]) * 11893 - u(x[7]) * 1730 - u(x[3]) * 17799 + u(x[1]) * 8697;
  const uint32_t q = u(x[3]) * 7373 - u(x[7]) * 4176 - u(x[5]) * 4926 + u(x[1]) * 20995;
  out[0] = descale(t0 + t2 + q, shift);
  out[1] = descale(t0 - t2 + p, shift);
  out[2] = descale(t0 - t2 - p, shift);
  out[3] = descale(t0 + t2 - q, shift);
}

// Inputs 0 1 3 5 7 to 2 outputs.
void transform2(const int32_t* x, int shift, int32_t* out) {
  const uint32_t t0 = u(x[0]) << 15;
  const uint32_t t = u(x[5]) * 6967 - u(x[7]) * 5906 - u(x[3]) * 10426 + u(x[1]) * 29692;
  out[0] = descale(t0 + t, shift);
  out[1] = descale(t0 - t, shift);
}

template <int kSize>
void reduced(int16_t* block, const uint8_t* ends, int count, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  constexpr int kColumnShift = kSize == 4 ? 12 : 13;
  constexpr auto transform = kSize == 4 ? transform4 : transform2;
  for (int i = 0; i < count; ++i, block += 64, out += kSize) {
    if (ends[i] <= 1) {  // both passes then only scale: by 4 / 8 and 1 / 32 in all
      const int32_t dc = static_cast<int16_t>(block[0] * quantiser[0]);
      for (int y = 0; y < kSize; ++y) std::memset(out + y * pitch, sample((dc + 4) >> 3), kSize);
      block[0] = 0;
      continue;
    }
    int32_t work[kSize][8];
    for (int x = 0; x < 8; ++x) {
      int32_t in[8], column[kSize];
      for (int y = 0; y < 8; ++y) in[y] = static_cast<int16_t>(block[8 * y + x] * quantiser[8 * y + x]);
      transform(in, kColumnShift, column);
      for (int y = 0; y < kSize; ++y) work[y][x] = column[y];
    }
    for (int y = 0; y < kSize; ++y) {
      int32_t row[kSize];
      transform(work[y], kColumnShift + 7, row);
      for (int x = 0; x < kSize; ++x) out[y * pitch + x] = sample(row[x]);
    }
    std::memset(block, 0, 64 * sizeof *block);
  }
}

void means(int16_t* dc, const uint8_t*, int count, const int16_t* quantiser, uint8_t* out, ptrdiff_t) {
  for (int i = 0; i < count; ++i) {
    // libjpeg looks samples up modulo 2^10.
    const int32_t mean = (dc[i] * quantiser[0] + 4) >> 3;
    out[i] = sample(((mean & 1023) ^ 512) - 512);
    dc[i] = 0;
  }
}

}  // namespace

InverseDct reduced_dct(int size) { return size == 4 ? reduced<4> : size == 2 ? reduced<2> : means; }

}  // namespace stoker::jpeg
