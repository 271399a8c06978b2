// SPDX-License-Identifier: Apache-2.0
// Vector of four floats, usually the channels of one pixel, for functions marked STOKER_FMA (fused_forms.hpp). Its
// arithmetic is that of the compiler's vector extensions.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/fused_forms.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stoker {

#if defined(STOKER_FMA)

typedef float Floats4 __attribute__((vector_size(16)));

inline Floats4 four_times(float x) { return Floats4{x, x, x, x}; }

inline Floats4 load_floats(const float* p) {
  Floats4 x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline void store_floats(float* p, Floats4 x) { std::memcpy(p, &x, sizeof x); }
inline void store_three(float* p, Floats4 x) { std::memcpy(p, &x, 3 * sizeof(float)); }

#if defined(__x86_64__)

// Load four bytes as floats.
STOKER_FMA inline Floats4 load_floats(const uint8_t* p) {
  int32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return (Floats4)_mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

// Return a * b + c, rounded once.
STOKER_FMA inline Floats4 multiply_add(Floats4 a, Floats4 b, Floats4 c) {
  return (Floats4)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}

// Store as bytes: rounded half to even and saturated to 0..255; NaN gives 0.
STOKER_FMA inline void store_three(uint8_t* p, Floats4 x) {
  const __m128 low = _mm_max_ps((__m128)x, _mm_setzero_ps());  // the second operand wins over a NaN
  const __m128i value = _mm_cvtps_epi32(_mm_min_ps(low, _mm_set1_ps(255.0f)));
  const __m128i low_bytes = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const int bytes = _mm_cvtsi128_si32(_mm_shuffle_epi8(value, low_bytes));
  std::memcpy(p, &bytes, 3);
}

#else

inline Floats4 load_floats(const uint8_t* p) {
  uint32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)));
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
}

inline Floats4 multiply_add(Floats4 a, Floats4 b, Floats4 c) { return vfmaq_f32(c, a, b); }

// The conversion saturates at 0 and gives 0 for NaN.
inline void store_three(uint8_t* p, Floats4 x) {
  const uint16x4_t words = vqmovn_u32(vcvtnq_u32_f32(x));
  const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vqmovn_u16(vcombine_u16(words, words))), 0);
  std::memcpy(p, &bytes, 3);
}

#endif

#endif  // STOKER_FMA

}  // namespace stoker
