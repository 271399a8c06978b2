// SPDX-License-Identifier: Apache-2.0
// Exact arithmetic of JPEG decoding after the entropy code, one block, sample or pixel at a time: libjpeg's "islow"
// transform with the overflow behaviour of libjpeg-turbo's x86 code, its reduced transforms, triangle upsampling and
// colour conversion. The plain CPU decoder and the GPU decoder use these functions; tests compare the vector code with
// them.
#pragma once
#include "shared/device.cuh"

namespace stoker::jpeg {

// ---- inverse DCT ----

// cos-derived constants of Loeffler, Ligtenberg and Moschytz, times 2^13.
constexpr int k0298 = 2446, k0390 = 3196, k0541 = 4433, k0765 = 6270, k0899 = 7373, k1175 = 9633, k1501 = 12299,
              k1847 = 15137, k1961 = 16069, k2053 = 16819, k2562 = 20995, k3072 = 25172;
constexpr int kColumnShift = 11, kRowShift = 18;

STOKER_DEVICE int32_t clamp_to(int32_t v, int32_t low, int32_t high) { return v < low ? low : v > high ? high : v; }
STOKER_DEVICE int32_t saturate16(int32_t v) { return clamp_to(v, -32768, 32767); }
STOKER_DEVICE uint32_t wrap16(uint32_t v) { return static_cast<uint32_t>(static_cast<int16_t>(v)); }
STOKER_DEVICE uint8_t to_sample(int32_t v) { return static_cast<uint8_t>(clamp_to(v, -128, 127) + 128); }

// Coefficient times quantiser step, modulo 2^16.
STOKER_DEVICE int32_t dequantised(int32_t coefficient, int32_t quantiser) {
  return static_cast<int16_t>(static_cast<uint32_t>(coefficient) * static_cast<uint32_t>(quantiser));
}

// A column of a block whose rows 1 to 7 are zero. It wraps where other columns saturate, as libjpeg-turbo's x86 code
// does.
STOKER_DEVICE int32_t flat_column(int32_t dequantised_dc) {
  return static_cast<int16_t>(static_cast<uint32_t>(dequantised_dc) << 2);
}

// Every sample of a block whose AC coefficients are zero.
STOKER_DEVICE uint8_t flat_sample(int32_t dequantised_dc) { return to_sample((flat_column(dequantised_dc) + 16) >> 5); }

// One 8-point transform without its final shift, in arithmetic modulo 2^32 like the vector code.
STOKER_DEVICE void transform8(const int32_t* in, uint32_t rounding, uint32_t* out) {
  uint32_t x[8];
  for (int i = 0; i < 8; ++i) x[i] = static_cast<uint32_t>(in[i]);
  const uint32_t t2 = x[2] * k0541 - x[6] * (k1847 - k0541);
  const uint32_t t3 = x[2] * (k0541 + k0765) + x[6] * k0541;
  const uint32_t t0 = (wrap16(x[0] + x[4]) << 13) + rounding, t1 = (wrap16(x[0] - x[4]) << 13) + rounding;
  const uint32_t a[4] = {t0 + t3, t1 + t2, t1 - t2, t0 - t3};
  const uint32_t y3 = wrap16(x[7] + x[3]), y4 = wrap16(x[5] + x[1]);
  const uint32_t z3 = y4 * k1175 - y3 * (k1961 - k1175), z4 = y3 * k1175 + y4 * (k1175 - k0390);
  const uint32_t y1 = (x[7] + x[1]) * k0899, y2 = (x[5] + x[3]) * k2562;
  const uint32_t b[4] = {x[1] * k1501 - y1 + z4, x[3] * k3072 - y2 + z3, x[5] * k2053 - y2 + z4,
                         x[7] * k0298 - y1 + z3};
  for (int i = 0; i < 4; ++i) {
    out[i] = a[i] + b[i];
    out[7 - i] = a[i] - b[i];
  }
}

// Transform a dequantised column. `one_row`: rows 1 to 7 of the whole block are zero.
STOKER_DEVICE void column8(const int32_t* in, bool one_row, int32_t* out) {
  uint32_t sums[8];
  transform8(in, 1u << (kColumnShift - 1), sums);
  const int32_t flat = flat_column(in[0]);
  for (int i = 0; i < 8; ++i) out[i] = one_row ? flat : saturate16(static_cast<int32_t>(sums[i]) >> kColumnShift);
}

STOKER_DEVICE void row8(const int32_t* in, uint8_t* out) {
  uint32_t sums[8];
  transform8(in, 1u << (kRowShift - 1), sums);
  for (int i = 0; i < 8; ++i) out[i] = to_sample(static_cast<int32_t>(sums[i]) >> kRowShift);
}

// ---- reduced transforms: their outputs are means of adjacent outputs of the 8-point transform ----

constexpr int kShift4 = 12, kShift2 = 13;  // for columns; rows shift by 7 more

// Sums are modulo 2^32; only damaged files make them wrap.
STOKER_DEVICE int32_t descale(uint32_t v, int shift) { return static_cast<int32_t>(v + (1u << (shift - 1))) >> shift; }

// Transform inputs 0 1 2 3 5 6 7 of an 8-point column or row (input 4 does not matter) to 4 outputs.
STOKER_DEVICE void transform4(const int32_t* in, int shift, int32_t* out) {
  uint32_t x[8];
  for (int i = 0; i < 8; ++i) x[i] = static_cast<uint32_t>(in[i]);
  const uint32_t t0 = x[0] << 14, t2 = x[2] * 15137 - x[6] * 6270;
  const uint32_t p = x[5] * 11893 - x[7] * 1730 - x[3] * 17799 + x[1] * 8697;
  const uint32_t q = x[3] * 7373 - x[7] * 4176 - x[5] * 4926 + x[1] * 20995;
  out[0] = descale(t0 + t2 + q, shift);
  out[1] = descale(t0 - t2 + p, shift);
  out[2] = descale(t0 - t2 - p, shift);
  out[3] = descale(t0 + t2 - q, shift);
}

// Transform inputs 0 1 3 5 7 to 2 outputs.
STOKER_DEVICE void transform2(const int32_t* in, int shift, int32_t* out) {
  uint32_t x[8];
  for (int i = 0; i < 8; ++i) x[i] = static_cast<uint32_t>(in[i]);
  const uint32_t t0 = x[0] << 15;
  const uint32_t t = x[5] * 6967 - x[7] * 5906 - x[3] * 10426 + x[1] * 29692;
  out[0] = descale(t0 + t, shift);
  out[1] = descale(t0 - t, shift);
}

// Transform a column to 4 values. libjpeg-turbo's x86 code keeps 16 bits between the passes. `one_row`: rows 1 to 3 and
// 5 to 7 of the whole block are zero before dequantisation; as in full size, the column then wraps where others
// saturate.
STOKER_DEVICE void column4(const int32_t* in, bool one_row, int32_t* out) {
  transform4(in, kShift4, out);
  const int32_t flat = flat_column(in[0]);
  for (int i = 0; i < 4; ++i) out[i] = one_row ? flat : saturate16(out[i]);
}

// Transform a column to 2 values. The `first` column keeps all of its bits, and there is no special case for flat
// blocks.
STOKER_DEVICE void column2(const int32_t* in, bool first, int32_t* out) {
  transform2(in, kShift2, out);
  for (int i = 0; i < 2; ++i) out[i] = first ? out[i] : saturate16(out[i]);
}

// Value of all samples of a block whose AC coefficients are zero, at 2 by 2 samples. At 4 by 4 flat_sample applies.
STOKER_DEVICE uint8_t flat_sample2(int32_t dequantised_dc) {
  return to_sample(descale(static_cast<uint32_t>(dequantised_dc) << 17, 20));
}

// Mean of a block from an exact product. libjpeg looks samples up modulo 2^10.
STOKER_DEVICE uint8_t mean_sample(int32_t dc, int32_t quantiser) {
  const int32_t mean = (dc * quantiser + 4) >> 3;
  return to_sample(((mean & 1023) ^ 512) - 512);
}

// ---- upsampling ----

// Interpolate between two samples, three parts to one. The bias is 1 for the first of a pair of outputs, 2 for the
// second.
STOKER_DEVICE int32_t between(int32_t near, int32_t far, int32_t bias) { return (3 * near + far + bias) >> 2; }
// Interpolation along both axes with one rounding: first the sum of a column, then the value between two sums with a
// bias of 8 for the first output of a pair and 7 for the second.
STOKER_DEVICE int32_t column_sum(int32_t near, int32_t far) { return 3 * near + far; }
STOKER_DEVICE int32_t corner(int32_t near_sum, int32_t far_sum, int32_t bias) {
  return (3 * near_sum + far_sum + bias) >> 4;
}

// ---- colour ----

// Conversion factors times 2^16.
constexpr int kCrToR = 91881, kCbToG = -22554, kCrToG = -46802, kCbToB = 116130, kHalf = 32768;

struct Pixel {
  uint8_t a, b, c;
};

STOKER_DEVICE uint8_t to_byte(int32_t v) { return static_cast<uint8_t>(clamp_to(v, 0, 255)); }

STOKER_DEVICE Pixel ycc_to_rgb(int32_t y, int32_t cb, int32_t cr) {
  const int32_t b = cb - 128, r = cr - 128;
  return {to_byte(y + ((kCrToR * r + kHalf) >> 16)), to_byte(y + ((kCbToG * b + kCrToG * r + kHalf) >> 16)),
          to_byte(y + ((kCbToB * b + kHalf) >> 16))};
}

// The sums of ycc_to_rgb before clamping.
struct WidePixel {
  int32_t r, g, b;
};
STOKER_DEVICE WidePixel ycc_to_wide(int32_t y, int32_t cb, int32_t cr) {
  return {y + ((kCrToR * cr + (kHalf - 128 * kCrToR)) >> 16),
          y + ((kCbToG * cb + kCrToG * cr + (kHalf - 128 * (kCbToG + kCrToG))) >> 16),
          y + ((kCbToB * cb + (kHalf - 128 * kCbToB)) >> 16)};
}

// libjpeg's luma; the three factors add up to 2^16, so the result fits into 8 bits.
STOKER_DEVICE uint8_t luma(int32_t r, int32_t g, int32_t b) {
  return static_cast<uint8_t>((19595 * r + 38470 * g + 7471 * b + kHalf) >> 16);
}

STOKER_DEVICE Pixel rgb_to_ycc(int32_t r, int32_t g, int32_t b) {
  constexpr int kOffset = (128 << 16) + kHalf - 1;
  return {luma(r, g, b), static_cast<uint8_t>((-11059 * r - 21709 * g + 32768 * b + kOffset) >> 16),
          static_cast<uint8_t>((32768 * r - 27439 * g - 5329 * b + kOffset) >> 16)};
}

}  // namespace stoker::jpeg
