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

// Sample of halved chroma from the sum of four; the rounding alternates from column to column.
STOKER_INLINED STOKER_DEVICE uint8_t halved(int32_t sum, int64_t column) {
  return static_cast<uint8_t>((sum + 1 + static_cast<int32_t>(column & 1)) >> 2);
}

}  // namespace stoker::jpeg
