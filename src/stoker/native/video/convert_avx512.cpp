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

inline V<int32_t> add_pairs(V<int32_t> x, V<int16_t> a, V<int32_t> weights) { return x + multiply_pairs(a, weights); }

inline V<uint8_t> pack_words(V<int16_t> a, V<int16_t> b) {
  return (V<uint8_t>)_mm512_packus_epi16((__m512i)a, (__m512i)b);
}

inline void join_parts(V<uint8_t> (&x)[3]) {
  const __m512i a = (__m512i)x[0], b = (__m512i)x[1], c = (__m512i)x[2];
  // Lanes of 16 bytes: a0 b0 c0 a1 | b1 c1 a2 b2 | c2 a3 b3 c3.
  const __m512i ab = _mm512_maskz_permutex2var_epi64(0xFF, a, _mm512_setr_epi64(0, 1, 8, 9, 0, 0, 2, 3), b);
  const __m512i bc = _mm512_maskz_permutex2var_epi64(0xFF, b, _mm512_setr_epi64(2, 3, 10, 11, 0, 0, 4, 5), c);
  const __m512i ca = _mm512_maskz_permutex2var_epi64(0xFF, c, _mm512_setr_epi64(4, 5, 14, 15, 0, 0, 6, 7), a);
  x[0] = (V<uint8_t>)_mm512_maskz_permutex2var_epi64(0xFF, ab, _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 6, 7), c);
  x[1] = (V<uint8_t>)_mm512_maskz_permutex2var_epi64(0xFF, bc, _mm512_setr_epi64(0, 1, 2, 3, 12, 13, 6, 7), a);
  x[2] = (V<uint8_t>)_mm512_maskz_permutex2var_epi64(0xFF, ca, _mm512_setr_epi64(0, 1, 2, 3, 14, 15, 6, 7), b);
}
inline void stream_vector(uint8_t* to, V<uint8_t> x) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)x);
}
inline V<int16_t> words_of_bytes(const uint8_t* p) {
  return (V<int16_t>)_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

#include "video/convert.ipp"
#include "video/weave_parts.ipp"

#include "video/rgb.ipp"

}  // namespace

Forms forms_avx512() { return forms_with_rgb(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
