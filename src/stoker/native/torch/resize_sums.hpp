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

constexpr int64_t kColumns = 32;
constexpr int64_t kRows = 4;

#if defined(__x86_64__)
#define STOKER_RESIZE_SUMS 1

// Sums of the three channels of one output pixel, in kRows rows. A source pixel has kPixel bytes: 3, or 4 of which the
// last is ignored. 16 bytes of each row are read.
template <int kPixel>
class PixelSums {
 public:
  STOKER_WIDE explicit PixelSums(int32_t half) : sums_{_mm256_set1_epi32(half), _mm256_set1_epi32(half)} {}
  // Add two pixels.
  STOKER_WIDE void add(const uint8_t* const* rows, int64_t at, int32_t pair) {
    for (int i = 0; i < 2; ++i) add(i, load(rows + 2 * i, at), order(0), pair);
  }
  // Add four pixels, with two pairs of weights.
  STOKER_WIDE void add_four(const uint8_t* const* rows, int64_t at, const int32_t* pairs) {
    for (int i = 0; i < 2; ++i) {
      const __m256i pixels = load(rows + 2 * i, at);
      add(i, pixels, order(0), pairs[0]);
      add(i, pixels, order(2 * kPixel), pairs[1]);
    }
  }
  // Store the pixel in each row, and one more byte.
  STOKER_WIDE void store(int precision, uint8_t* const* to, int64_t at) const {
    const __m128i shift = _mm_cvtsi32_si128(precision);
    const __m256i words = _mm256_packs_epi32(_mm256_sra_epi32(sums_[0], shift), _mm256_sra_epi32(sums_[1], shift));
    const __m256i bytes = _mm256_packus_epi16(words, words);  // rows 0, 2 in the low half, rows 1, 3 in the high one
    const __m128i even = _mm256_castsi256_si128(bytes), odd = _mm256_extracti128_si256(bytes, 1);
    const int pixels[kRows] = {_mm_cvtsi128_si32(even), _mm_cvtsi128_si32(odd), _mm_extract_epi32(even, 1),
                               _mm_extract_epi32(odd, 1)};
    for (int i = 0; i < kRows; ++i) std::memcpy(to[i] + at, pixels + i, 4);
  }

 private:
  // Order that makes words r r g g b b of two pixels.
  STOKER_WIDE static __m256i order(char at) {
    const char p = kPixel;
    return _mm256_broadcastsi128_si256(
        _mm_setr_epi8(at, -1, at + p, -1, at + 1, -1, at + 1 + p, -1, at + 2, -1, at + 2 + p, -1, -1, -1, -1, -1));
  }
  STOKER_WIDE static __m256i load(const uint8_t* const* rows, int64_t at) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[0] + at));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[1] + at));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }
  STOKER_WIDE void add(int i, __m256i pixels, __m256i order, int32_t pair) {
    sums_[i] =
        _mm256_add_epi32(sums_[i], _mm256_madd_epi16(_mm256_shuffle_epi8(pixels, order), _mm256_set1_epi32(pair)));
  }
  __m256i sums_[2];
};

// Sums of kColumns bytes of a row.
class ColumnSums {
 public:
  STOKER_WIDE explicit ColumnSums(int32_t half) {
    for (__m256i& sum : sums_) sum = _mm256_set1_epi32(half);
  }
  STOKER_WIDE void add(const uint8_t* a, const uint8_t* b, int32_t pair) {
    const __m256i p = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
    const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
    const __m256i weights = _mm256_set1_epi32(pair), zero = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(p, q), high = _mm256_unpackhi_epi8(p, q);
    add(0, _mm256_unpacklo_epi8(low, zero), weights);
    add(1, _mm256_unpackhi_epi8(low, zero), weights);
    add(2, _mm256_unpacklo_epi8(high, zero), weights);
    add(3, _mm256_unpackhi_epi8(high, zero), weights);
  }
  STOKER_WIDE void store(int precision, uint8_t* to) const {
    // packing works within lanes like the unpacking before, so the bytes are in order again
    const __m128i shift = _mm_cvtsi32_si128(precision);
    __m256i words[2];
    for (int i = 0; i < 2; ++i)
      words[i] = _mm256_packs_epi32(_mm256_sra_epi32(sums_[2 * i], shift), _mm256_sra_epi32(sums_[2 * i + 1], shift));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_packus_epi16(words[0], words[1]));
  }

 private:
  STOKER_WIDE void add(int i, __m256i words, __m256i weights) {
    sums_[i] = _mm256_add_epi32(sums_[i], _mm256_madd_epi16(words, weights));
  }
  __m256i sums_[4];
};

#elif defined(__aarch64__)
#define STOKER_RESIZE_SUMS 1

inline int16x4_t weights_of(int32_t pair) { return vreinterpret_s16_s32(vdup_n_s32(pair)); }
inline int16x8_t widen(uint8x8_t bytes) { return vreinterpretq_s16_u16(vmovl_u8(bytes)); }

template <int kPixel>
class PixelSums {
 public:
  explicit PixelSums(int32_t half) {
    for (int32x4_t& sum : sums_) sum = vdupq_n_s32(half);
  }
  void add(const uint8_t* const* rows, int64_t at, int32_t pair) {
    for (int i = 0; i < kRows; ++i) {
      const int16x8_t words = widen(vld1_u8(rows[i] + at));
      sums_[i] = vmlal_lane_s16(sums_[i], vget_low_s16(words), weights_of(pair), 0);
      sums_[i] = vmlal_lane_s16(sums_[i], vget_low_s16(vextq_s16(words, words, kPixel)), weights_of(pair), 1);
    }
  }
  void add_four(const uint8_t* const* rows, int64_t at, const int32_t* pairs) {
    add(rows, at, pairs[0]);
    add(rows, at + 2 * kPixel, pairs[1]);
  }
  void store(int precision, uint8_t* const* to, int64_t at) const {
    for (int i = 0; i < kRows; ++i) {
      const int16x4_t words = vqmovn_s32(vshlq_s32(sums_[i], vdupq_n_s32(-precision)));
      const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vqmovun_s16(vcombine_s16(words, words))), 0);
      std::memcpy(to[i] + at, &bytes, 4);
    }
  }

 private:
  int32x4_t sums_[kRows];
};

class ColumnSums {
 public:
  explicit ColumnSums(int32_t half) {
    for (int32x4_t& sum : sums_) sum = vdupq_n_s32(half);
  }
  void add(const uint8_t* a, const uint8_t* b, int32_t pair) {
    for (int i = 0; i < 2; ++i) {
      add<0>(i, vld1q_u8(a + 16 * i), weights_of(pair));
      add<1>(i, vld1q_u8(b + 16 * i), weights_of(pair));
    }
  }
  void store(int precision, uint8_t* to) const {
    const int32x4_t shift = vdupq_n_s32(-precision);
    int16x4_t words[8];
    for (int q = 0; q < 8; ++q) words[q] = vqmovn_s32(vshlq_s32(sums_[q], shift));
    for (int i = 0; i < 2; ++i)
      vst1q_u8(to + 16 * i, vcombine_u8(vqmovun_s16(vcombine_s16(words[4 * i], words[4 * i + 1])),
                                        vqmovun_s16(vcombine_s16(words[4 * i + 2], words[4 * i + 3]))));
  }

 private:
  template <int kWeight>
  void add(int i, uint8x16_t bytes, int16x4_t weights) {
    const int16x8_t low = widen(vget_low_u8(bytes)), high = widen(vget_high_u8(bytes));
    int32x4_t* const sums = sums_ + 4 * i;
    sums[0] = vmlal_lane_s16(sums[0], vget_low_s16(low), weights, kWeight);
    sums[1] = vmlal_lane_s16(sums[1], vget_high_s16(low), weights, kWeight);
    sums[2] = vmlal_lane_s16(sums[2], vget_low_s16(high), weights, kWeight);
    sums[3] = vmlal_lane_s16(sums[3], vget_high_s16(high), weights, kWeight);
  }
  int32x4_t sums_[8];
};

#endif

}  // namespace stoker::torch_resize
