// SPDX-License-Identifier: Apache-2.0
// Conversion of video frames for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include "video/convert.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::video {
namespace {

#include "video/convert.ipp"

struct V {
  using Words = __m256i;
  static constexpr int64_t kBlock = 32;  // pixels
  static Words words(int32_t x) { return _mm256_set1_epi16(static_cast<int16_t>(x)); }
  static Words pairs(int32_t x) { return _mm256_set1_epi32(x); }
  static Words load(const uint8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
  // Half as many bytes, each twice.
  static Words doubled(const uint8_t* at) {
    const Words wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    return _mm256_or_si256(wide, _mm256_slli_epi16(wide, 8));
  }
  static Words widened(Words bytes, int half) {
    return _mm256_cvtepu8_epi16(half ? _mm256_extracti128_si256(bytes, 1) : _mm256_castsi256_si128(bytes));
  }
  static Words sub(Words a, Words b) { return _mm256_sub_epi16(a, b); }
  static Words add(Words a, Words b) { return _mm256_add_epi32(a, b); }
  static Words low(Words a, Words b) { return _mm256_unpacklo_epi16(a, b); }
  static Words high(Words a, Words b) { return _mm256_unpackhi_epi16(a, b); }
  static Words products(Words a, Words b) { return _mm256_madd_epi16(a, b); }
  static Words down(Words a) { return _mm256_srai_epi32(a, kFractionBits); }
  static Words packed(Words a, Words b) { return _mm256_packs_epi32(a, b); }
  static void store(uint8_t* at, const Words* words) {
    const Words bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words[0], words[1]), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), bytes);
  }
};

#include "video/rgb_x86.ipp"

}  // namespace

Forms forms_avx2() { return forms_x86(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
