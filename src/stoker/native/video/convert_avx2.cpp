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

inline V<int32_t> add_pairs(V<int32_t> x, V<int16_t> a, V<int32_t> weights) { return x + multiply_pairs(a, weights); }

inline V<uint8_t> pack_words(V<int16_t> a, V<int16_t> b) {
  return (V<uint8_t>)_mm256_packus_epi16((__m256i)a, (__m256i)b);
}

inline void join_parts(V<uint8_t> (&x)[3]) {
  const __m256i a = (__m256i)x[0], b = (__m256i)x[1], c = (__m256i)x[2];
  x[0] = (V<uint8_t>)_mm256_permute2x128_si256(a, b, 0x20);  // lanes of 16 bytes: a0 b0 | c0 a1 | b1 c1
  x[1] = (V<uint8_t>)_mm256_permute2x128_si256(c, a, 0x30);
  x[2] = (V<uint8_t>)_mm256_permute2x128_si256(b, c, 0x31);
}
inline void stream_vector(uint8_t* to, V<uint8_t> x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)x);
}
inline V<int16_t> words_of_bytes(const uint8_t* p) {
  return (V<int16_t>)_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

#include "video/convert.ipp"
#include "video/weave_parts.ipp"

#include "video/rgb.ipp"

}  // namespace

Forms forms_avx2() { return forms_with_rgb(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
