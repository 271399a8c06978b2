// SPDX-License-Identifier: Apache-2.0
// Weighted sums of torch's resizing of bytes (torch/resize.cpp) in registers, for functions marked STOKER_WIDE
// (base/simd.hpp). A pair is two 16-bit weights, the first one in the low half.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/simd.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stoker::torch_resize {

constexpr int64_t kColumns = 16;

#if defined(__x86_64__)
#define STOKER_RESIZE_SUMS 1

// Sums of a pixel's three channels.
class PixelSum {
 public:
  STOKER_WIDE explicit PixelSum(int32_t half) : sum_(_mm_set1_epi32(half)) {}
  // Add two pixels of three bytes. Two more bytes are read. As words the pixels are r r g g b b.
  STOKER_WIDE void add(const uint8_t* pixels, int32_t pair) {
    const __m128i spread = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    const __m128i words = _mm_shuffle_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixels)), spread);
    sum_ = _mm_add_epi32(sum_, _mm_madd_epi16(words, _mm_set1_epi32(pair)));
  }
  STOKER_WIDE void store(int precision, uint8_t* to) const {
    __m128i sum = _mm_sra_epi32(sum_, _mm_cvtsi32_si128(precision));
    sum = _mm_packs_epi32(sum, sum);
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    std::memcpy(to, &bytes, 3);
  }

 private:
  __m128i sum_;
};

// Sums of kColumns bytes of a row.
class ColumnSums {
 public:
  STOKER_WIDE explicit ColumnSums(int32_t half) : low_(_mm256_set1_epi32(half)), high_(low_) {}
  STOKER_WIDE void add(const uint8_t* a, const uint8_t* b, int32_t pair) {
    const __m128i p = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
    const __m256i weights = _mm256_set1_epi32(pair);
    low_ = _mm256_add_epi32(low_, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(p, q)), weights));
    high_ = _mm256_add_epi32(high_, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(p, q)), weights));
  }
  STOKER_WIDE void store(int precision, uint8_t* to) const {
    const __m128i shift = _mm_cvtsi32_si128(precision);
    const __m256i packed = _mm256_packs_epi32(_mm256_sra_epi32(low_, shift), _mm256_sra_epi32(high_, shift));
    const __m256i words = _mm256_permute4x64_epi64(packed, 0xd8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }

 private:
  __m256i low_, high_;
};

#elif defined(__aarch64__)
#define STOKER_RESIZE_SUMS 1

inline int16x4_t weights_of(int32_t pair) { return vreinterpret_s16_s32(vdup_n_s32(pair)); }
inline int16x8_t widen(uint8x8_t bytes) { return vreinterpretq_s16_u16(vmovl_u8(bytes)); }

class PixelSum {
 public:
  explicit PixelSum(int32_t half) : sum_(vdupq_n_s32(half)) {}
  void add(const uint8_t* pixels, int32_t pair) {
    const int16x8_t words = widen(vld1_u8(pixels));
    sum_ = vmlal_lane_s16(sum_, vget_low_s16(words), weights_of(pair), 0);
    sum_ = vmlal_lane_s16(sum_, vget_low_s16(vextq_s16(words, words, 3)), weights_of(pair), 1);
  }
  void store(int precision, uint8_t* to) const {
    const int16x4_t words = vqmovn_s32(vshlq_s32(sum_, vdupq_n_s32(-precision)));
    const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vqmovun_s16(vcombine_s16(words, words))), 0);
    std::memcpy(to, &bytes, 3);
  }

 private:
  int32x4_t sum_;
};

class ColumnSums {
 public:
  explicit ColumnSums(int32_t half)
      : sums_{vdupq_n_s32(half), vdupq_n_s32(half), vdupq_n_s32(half), vdupq_n_s32(half)} {}
  void add(const uint8_t* a, const uint8_t* b, int32_t pair) {
    add<0>(vld1q_u8(a), weights_of(pair));
    add<1>(vld1q_u8(b), weights_of(pair));
  }
  void store(int precision, uint8_t* to) const {
    const int32x4_t shift = vdupq_n_s32(-precision);
    int16x4_t words[4];
    for (int q = 0; q < 4; ++q) words[q] = vqmovn_s32(vshlq_s32(sums_[q], shift));
    vst1q_u8(to,
             vcombine_u8(vqmovun_s16(vcombine_s16(words[0], words[1])), vqmovun_s16(vcombine_s16(words[2], words[3]))));
  }

 private:
  template <int kWeight>
  void add(uint8x16_t bytes, int16x4_t weights) {
    const int16x8_t low = widen(vget_low_u8(bytes)), high = widen(vget_high_u8(bytes));
    sums_[0] = vmlal_lane_s16(sums_[0], vget_low_s16(low), weights, kWeight);
    sums_[1] = vmlal_lane_s16(sums_[1], vget_high_s16(low), weights, kWeight);
    sums_[2] = vmlal_lane_s16(sums_[2], vget_low_s16(high), weights, kWeight);
    sums_[3] = vmlal_lane_s16(sums_[3], vget_high_s16(high), weights, kWeight);
  }
  int32x4_t sums_[4];
};

#endif

}  // namespace stoker::torch_resize
