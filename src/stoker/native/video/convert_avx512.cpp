// SPDX-License-Identifier: Apache-2.0
// Conversion of video frames for AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

#include "video/convert.hpp"

#include "base/target_begin_avx512.hpp"

namespace stoker::video {
namespace {

#include "video/convert.ipp"

struct V {
  using Words = __m512i;
  static constexpr int64_t kBlock = 64;  // pixels
  static Words words(int32_t x) { return _mm512_set1_epi16(static_cast<int16_t>(x)); }
  static Words pairs(int32_t x) { return _mm512_set1_epi32(x); }
  static Words load(const uint8_t* at) { return _mm512_loadu_si512(at); }
  // Half as many bytes, each twice.
  static Words doubled(const uint8_t* at) {
    const Words wide = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    return _mm512_or_si512(wide, _mm512_slli_epi16(wide, 8));
  }
  static Words widened(Words bytes, int half) {
    return _mm512_cvtepu8_epi16(half ? _mm512_extracti64x4_epi64(bytes, 1) : _mm512_castsi512_si256(bytes));
  }
  static Words sub(Words a, Words b) { return _mm512_sub_epi16(a, b); }
  static Words add(Words a, Words b) { return _mm512_add_epi32(a, b); }
  static Words low(Words a, Words b) { return _mm512_unpacklo_epi16(a, b); }
  static Words high(Words a, Words b) { return _mm512_unpackhi_epi16(a, b); }
  static Words products(Words a, Words b) { return _mm512_madd_epi16(a, b); }
  static Words down(Words a) { return _mm512_srai_epi32(a, kFractionBits); }
  static Words packed(Words a, Words b) { return _mm512_packs_epi32(a, b); }
  static void store(uint8_t* at, const Words* words) {
    const Words order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);  // packing works in lanes of 16 bytes
    _mm512_storeu_si512(at, _mm512_permutexvar_epi64(order, _mm512_packus_epi16(words[0], words[1])));
  }
};

#include "video/rgb_x86.ipp"

}  // namespace

Forms forms_avx512() { return forms_x86(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
