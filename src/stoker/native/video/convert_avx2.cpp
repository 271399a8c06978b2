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

inline void stream_parts(uint8_t* const (&to)[2], V<uint8_t> x) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to[0]), _mm256_castsi256_si128((__m256i)x));
  _mm_stream_si128(reinterpret_cast<__m128i*>(to[1]), _mm256_extracti128_si256((__m256i)x, 1));
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
