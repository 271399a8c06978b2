// SPDX-License-Identifier: Apache-2.0
// Exact arithmetic of JPEG compression without the entropy code: libjpeg's quantisers by quality, and its "islow" forward
// transform. The CPU's and the GPU's `jpeg_compression_distortion` use these functions.
#pragma once
#include "shared/device.cuh"
#include "shared/fused.hpp"

namespace stoker::jpeg {

constexpr int kMcuSide = 16;  // pixels of an MCU with halved chroma: four blocks of luma, one of each chroma

// ITU-T T.81, tables K.1 (luma) and K.2 (chroma).
struct Quantisers {
  uint8_t base[2][64] = {
      {16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
       69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
       81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99},
      {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
       99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
       99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}};
};

// Quantiser of libjpeg's quality scale.
STOKER_DEVICE int32_t scaled_quantiser(int32_t base, int32_t quality) {
  const int32_t percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  const int32_t scaled = (base * percent + 50) / 100;
  return scaled < 1 ? 1 : scaled > 255 ? 255 : scaled;
}

// Divisor of the transform's results, which are 8 times the coefficients.
STOKER_INLINED STOKER_DEVICE float half_divisor(int32_t quantiser) { return static_cast<float>(4 * quantiser) + 0.5f; }
STOKER_INLINED STOKER_DEVICE float inverse_divisor(int32_t quantiser) {
  return 1.0f / static_cast<float>(8 * quantiser);
}

// Coefficient of a result, rounded to the nearest, halves away from zero.
// A whole number below 2^16 plus a half, times the reciprocal of one below 2^12: no whole number is as near as the
// rounding errors, so that the truncation gives the exact quotient.
STOKER_INLINED STOKER_DEVICE int32_t quantised(int32_t result, float half, float inverse) {
  const int32_t sign = result >> 31;
  const float size = (static_cast<float>((result ^ sign) - sign) + half) * inverse;
  return (static_cast<int32_t>(size) ^ sign) - sign;
}

// The same by one addition, for results below 2^16: the lower 16 bits of the returned float are the coefficient, the
// others those of 1.5 * 2^23. `inverse` is inverse_above_divisor(quantiser), larger than the exact reciprocal by less
// than 2^-21 of it. So halves are rounded away from zero, and no other quotient reaches a half, from which it differs by
// at least one part of the divisor.
constexpr float kWholeNumbers = 12582912.0f;  // its successors differ by 1
STOKER_INLINED STOKER_DEVICE float inverse_above_divisor(int32_t quantiser) {
  return inverse_divisor(quantiser) * 1.0000002384185791f;
}
STOKER_INLINED STOKER_DEVICE float quantised_bits(int32_t result, float inverse) {
  return fused<true>(static_cast<float>(result), inverse, kWholeNumbers);
}

constexpr int kForwardBits = 13,
              kForwardFirst = 2;  // fractional bits: of the constants, and of the first pass's results

template <int kShift>
STOKER_INLINED STOKER_DEVICE int32_t descaled(int32_t x) {
  return (x + (1 << (kShift - 1))) >> kShift;
}

// Transform eight numbers in place: a row of samples less 128, or a column of the rows' results.
template <bool kRows>
STOKER_INLINED STOKER_DEVICE void forward8(int32_t& x0, int32_t& x1, int32_t& x2, int32_t& x3, int32_t& x4, int32_t& x5,
                                           int32_t& x6, int32_t& x7) {
  constexpr int kShift = kRows ? kForwardBits - kForwardFirst : kForwardBits + kForwardFirst;
  const int32_t s0 = x0 + x7, s7 = x0 - x7, s1 = x1 + x6, s6 = x1 - x6;
  const int32_t s2 = x2 + x5, s5 = x2 - x5, s3 = x3 + x4, s4 = x3 - x4;
  const int32_t e0 = s0 + s3, e3 = s0 - s3, e1 = s1 + s2, e2 = s1 - s2;
  if constexpr (kRows) {
    x0 = (e0 + e1) * (1 << kForwardFirst);
    x4 = (e0 - e1) * (1 << kForwardFirst);
  } else {
    x0 = descaled<kForwardFirst>(e0 + e1);
    x4 = descaled<kForwardFirst>(e0 - e1);
  }
  const int32_t even = (e2 + e3) * 4433;
  x2 = descaled<kShift>(even + e3 * 6270);
  x6 = descaled<kShift>(even - e2 * 15137);
  const int32_t all = (s4 + s6 + s5 + s7) * 9633;
  const int32_t z1 = (s4 + s7) * -7373, z2 = (s5 + s6) * -20995;
  const int32_t z3 = (s4 + s6) * -16069 + all, z4 = (s5 + s7) * -3196 + all;
  x7 = descaled<kShift>(s4 * 2446 + z1 + z3);
  x5 = descaled<kShift>(s5 * 16819 + z2 + z4);
  x3 = descaled<kShift>(s6 * 25172 + z2 + z3);
  x1 = descaled<kShift>(s7 * 12299 + z1 + z4);
}

// Transform eight dequantised coefficients of a column, or eight of the columns' results, without the final shift, times
// kScale. This is transform8 of jpeg_arithmetic.cuh for blocks that were quantised here: their coefficients are below
// 1,200 and those of a column below 3,950 in sum (2,896, from 64 samples of at most 128, and eight errors of at most
// 128), so that no 16-bit number wraps or saturates, and flat blocks are no special case.
template <uint32_t kScale>
STOKER_INLINED STOKER_DEVICE void inverse8(const int32_t* in, uint32_t rounding, uint32_t* out) {
  uint32_t x[8];
  STOKER_UNROLL for (int i = 0; i < 8; ++i) x[i] = static_cast<uint32_t>(in[i]);
  const uint32_t t0 = (x[0] + x[4]) * (kScale << 13) + rounding, t1 = (x[0] - x[4]) * (kScale << 13) + rounding;
  const uint32_t t2 = x[2] * (kScale * 4433) - x[6] * (kScale * 10704);
  const uint32_t t3 = x[2] * (kScale * 10703) + x[6] * (kScale * 4433);
  const uint32_t a[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  const uint32_t y3 = x[7] + x[3], y4 = x[5] + x[1];
  const uint32_t z3 = y4 * (kScale * 9633) - y3 * (kScale * 6436), z4 = y3 * (kScale * 9633) + y4 * (kScale * 6437);
  const uint32_t y1 = (x[7] + x[1]) * (kScale * 7373), y2 = (x[5] + x[3]) * (kScale * 20995);
  const uint32_t b[4] = {x[1] * (kScale * 12299) - y1 + z4, x[3] * (kScale * 25172) - y2 + z3,
                         x[5] * (kScale * 16819) - y2 + z4, x[7] * (kScale * 2446) - y1 + z3};
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    out[i] = a[i] + b[i];
    out[7 - i] = a[i] - b[i];
  }
}

// Sample of halved chroma from the sum of four; the rounding alternates from column to column.
STOKER_INLINED STOKER_DEVICE uint8_t halved(int32_t sum, int64_t column) {
  return static_cast<uint8_t>((sum + 1 + static_cast<int32_t>(column & 1)) >> 2);
}

}  // namespace stoker::jpeg
