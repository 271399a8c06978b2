// SPDX-License-Identifier: Apache-2.0
// Conversion of video frames for AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shared/half.hpp"
#include "video/convert.hpp"

#include "base/target_begin_avx512.hpp"

namespace stoker::video {
namespace {

#define STOKER_VECTOR_BYTES 64
#include "base/vectors.ipp"

#include "base/vectors_avx512.ipp"

inline V<int32_t> multiply_pairs(V<int16_t> a, V<int32_t> weights) {
  return (V<int32_t>)_mm512_madd_epi16((__m512i)a, (__m512i)weights);
}

inline void stream_parts(uint8_t* const (&to)[4], V<uint8_t> x) {
  const __m512i v = (__m512i)x;
  _mm_stream_si128(reinterpret_cast<__m128i*>(to[0]), _mm512_castsi512_si128(v));
  _mm_stream_si128(reinterpret_cast<__m128i*>(to[1]), _mm512_maskz_extracti32x4_epi32(0xF, v, 1));
  _mm_stream_si128(reinterpret_cast<__m128i*>(to[2]), _mm512_maskz_extracti32x4_epi32(0xF, v, 2));
  _mm_stream_si128(reinterpret_cast<__m128i*>(to[3]), _mm512_maskz_extracti32x4_epi32(0xF, v, 3));
}
inline V<int16_t> words_of_bytes(const uint8_t* p) {
  return (V<int16_t>)_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

#include "video/convert.ipp"
#include "video/rgb.ipp"

}  // namespace

Forms forms_avx512() { return forms_with_rgb(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
