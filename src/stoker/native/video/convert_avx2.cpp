// SPDX-License-Identifier: Apache-2.0
// Conversion of video frames for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shared/half.hpp"
#include "video/convert.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::video {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "base/vectors_avx2.ipp"

inline V<int32_t> multiply_pairs(V<int16_t> a, V<int32_t> weights) {
  return (V<int32_t>)_mm256_madd_epi16((__m256i)a, (__m256i)weights);
}
inline V<int16_t> high_words(V<int32_t> a, V<int32_t> b) {
  return (V<int16_t>)_mm256_blend_epi16(_mm256_srli_epi32((__m256i)a, 16), (__m256i)b, 0xAA);
}
inline V<uint8_t> pack_words(V<int16_t> a, V<int16_t> b) {
  return (V<uint8_t>)_mm256_packus_epi16((__m256i)a, (__m256i)b);
}

constexpr uintptr_t kPastAlignment = 32;
inline void store_woven(uint8_t* to, const V<uint8_t> (&x)[3], bool past) {
  const __m256i a = (__m256i)x[0], b = (__m256i)x[1], c = (__m256i)x[2];
  const __m256i first = _mm256_permute2x128_si256(a, b, 0x20), second = _mm256_blend_epi32(c, a, 0xF0),
                third = _mm256_permute2x128_si256(b, c, 0x31);
  auto* out = reinterpret_cast<__m256i*>(to);
  if (past) {
    _mm256_stream_si256(out, first);
    _mm256_stream_si256(out + 1, second);
    _mm256_stream_si256(out + 2, third);
    return;
  }
  _mm256_storeu_si256(out, first);
  _mm256_storeu_si256(out + 1, second);
  _mm256_storeu_si256(out + 2, third);
}
inline V<int16_t> words_of_bytes(const uint8_t* p) {
  return (V<int16_t>)_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

#include "video/convert.ipp"
#include "video/rgb.ipp"

}  // namespace

Forms forms_avx2() { return forms_with_rgb(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
