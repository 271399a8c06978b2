// SPDX-License-Identifier: Apache-2.0
// Half precision: conversions in plain integer code that equal F16C and NEON bit for bit (NaNs become quiet and keep
// the upper payload bits), and batch forms that use the hardware's instruction where there is one.
#pragma once
#include <cstdint>
#include <cstring>

namespace stoker {

inline uint16_t half_from_float(float value) {
  uint32_t u;
  std::memcpy(&u, &value, sizeof u);
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  u &= 0x7FFFFFFFu;
  if (u > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | ((u >> 13) & 0x1FFu));
  if (u >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65520 and above round to infinity
  if (u < 0x38800000u) {
    // The result is subnormal in half precision. Adding 0.5 aligns the last bit that is kept with the last bit of the
    // sum, and the addition rounds.
    float magnitude;
    std::memcpy(&magnitude, &u, sizeof magnitude);
    magnitude += 0.5f;
    std::memcpy(&u, &magnitude, sizeof u);
    return static_cast<uint16_t>(sign | (u - 0x3F000000u));
  }
  u += 0xC8000FFFu + ((u >> 13) & 1u);  // rebias the exponent by -112 and round half to even
  return static_cast<uint16_t>(sign | (u >> 13));
}

inline float float_from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t u = static_cast<uint32_t>(half & 0x7FFFu) << 13;
  if (u >= 0x0F800000u) {
    u += 0x70000000u;                       // infinity or NaN
    if (u & 0x007FFFFFu) u |= 0x00400000u;  // quiet, as the hardware does
  } else if (u >= 0x00800000u) {
    u += 0x38000000u;
  } else {
    // The value is subnormal: use the same fraction with the exponent of 2^-14, then subtract that power.
    u += 0x38800000u;
    float f;
    std::memcpy(&f, &u, sizeof f);
    f -= 0x1p-14f;
    std::memcpy(&u, &f, sizeof u);
  }
  u |= sign;
  float result;
  std::memcpy(&result, &u, sizeof result);
  return result;
}

// Round to odd: an inexact float gets its last bit set, so that a second rounding can distinguish it from an exact one.
inline float odd_float(double value) {
  float f = static_cast<float>(value);
  if (value == static_cast<double>(f) || value != value) return f;
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7F800000u) == 0x7F800000u) return f;
  const bool away = (value < 0 ? -value : value) < static_cast<double>(f < 0 ? -f : f);
  if (away) --bits;  // truncated towards zero
  bits |= 1u;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

// Rounds once; converting to float first would round twice.
inline uint16_t half_from_double(double value) { return half_from_float(odd_float(value)); }

// bfloat16 is the upper half of a float. Rounds half to even; NaNs become quiet and keep the upper payload bits.
inline uint16_t bfloat_from_float(float value) {
  uint32_t u;
  std::memcpy(&u, &value, sizeof u);
  const uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16, quiet = (u >> 16) | 0x40u;
  return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

inline float float_from_bfloat(uint16_t bits) {
  const uint32_t u = static_cast<uint32_t>(bits) << 16;
  float result;
  std::memcpy(&result, &u, sizeof result);
  return result;
}

// Rounds once.
inline uint16_t bfloat_from_double(double value) { return bfloat_from_float(odd_float(value)); }

}  // namespace stoker
