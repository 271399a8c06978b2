// SPDX-License-Identifier: Apache-2.0
// AVX2 kernels of 8-bit resampling.
#if defined(__x86_64__)
#include "resample_x86.hpp"

#include <algorithm>
#include <cstring>

#define STOKER_AVX2 __attribute__((target("avx2")))
#define STOKER_INLINE STOKER_AVX2 __attribute__((always_inline)) inline

namespace stoker::resample {

namespace {

STOKER_INLINE __m256i join_words(__m256i low, __m256i high) {
  return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, 15)), kWeightBits);
}

STOKER_INLINE __m256i broadcast2(const uint32_t* p) { return _mm256_set1_epi32(static_cast<int>(*p)); }

// One output pixel of two rows.
template <int C, int kGroups>
STOKER_INLINE __m256i pixel_avx2(const RowTaps& taps, const uint8_t* src0, const uint8_t* src1, int64_t x,
                                             __m256i first, __m256i second) {
  const int64_t groups = kGroups ? kGroups : taps.groups;
  const int64_t at = int64_t{taps.start[x]} * C;
  const uint32_t* w = taps.packed + x * groups * 4;
  __m256i low = _mm256_set1_epi32(kHalf), high = _mm256_setzero_si256();
  for (int64_t g = 0; g < groups; ++g, w += 4) {
    const int64_t offset = at + g * kGroup * C;
    const __m256i v =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load16(src0 + offset)), load16(src1 + offset), 1);
    const __m256i v0 = _mm256_shuffle_epi8(v, first), v1 = _mm256_shuffle_epi8(v, second);
    high = _mm256_add_epi32(high, _mm256_madd_epi16(v0, broadcast2(w)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(v0, broadcast2(w + 1)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(v1, broadcast2(w + 2)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(v1, broadcast2(w + 3)));
  }
  return join_words(low, high);
}

template <int C, int kGroups>
STOKER_AVX2 void horizontal_avx2(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows],
                                 int64_t x0, int64_t x1) {
  const __m256i first = _mm256_broadcastsi128_si256(load16(kShuffles[C].first));
  const __m256i second = _mm256_broadcastsi128_si256(load16(kShuffles[C].second));
  const __m256i finish = _mm256_broadcastsi128_si256(load16(kShuffles[C].finish));
  for (int r = 0; r < kRows; r += 2)
    for (int64_t x = x0; x < x1; x += 4) {
      __m256i v[4];
      for (int j = 0; j < 4; ++j)
        v[j] = pixel_avx2<C, kGroups>(taps, src[r], src[r + 1], std::min(x + j, x1 - 1), first, second);
      const __m256i words01 = _mm256_packs_epi32(v[0], v[1]), words23 = _mm256_packs_epi32(v[2], v[3]);
      const __m256i bytes = _mm256_shuffle_epi8(_mm256_packus_epi16(words01, words23), finish);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst[r] + x * C), _mm256_castsi256_si128(bytes));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst[r + 1] + x * C), _mm256_extracti128_si256(bytes, 1));
    }
}

STOKER_INLINE __m256i load8(const uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

// Eight neighbouring outputs of one single-channel row.
STOKER_INLINE __m256i single_avx2(const RowTaps& taps, const uint8_t* src, __m256i start, __m256i mask,
                                              const uint32_t* w) {
  const __m256i even = _mm256_set1_epi32(0x00FF00FF);
  __m256i low = _mm256_set1_epi32(kHalf), high = _mm256_setzero_si256();
  for (int64_t g = 0; g < taps.groups; ++g, w += 4 * kBlock) {
    const auto* base = reinterpret_cast<const int*>(src + g * kGroup);
    const __m256i v = _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), base, start, mask, 1);
    // Bytes t0 t1 t2 t3 of a dword to words (t0,t1) and (t2,t3).
    const __m256i t02 = _mm256_and_si256(v, even), t13 = _mm256_and_si256(_mm256_srli_epi16(v, 8), even);
    const __m256i t01 = _mm256_blend_epi16(t02, _mm256_slli_epi32(t13, 16), 0xAA);
    const __m256i t23 = _mm256_blend_epi16(_mm256_srli_epi32(t02, 16), t13, 0xAA);
    high = _mm256_add_epi32(high, _mm256_madd_epi16(t01, load8(w)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(t01, load8(w + kBlock)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(t23, load8(w + 2 * kBlock)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(t23, load8(w + 3 * kBlock)));
  }
  return join_words(low, high);
}

STOKER_AVX2 void horizontal_avx2_single(const RowTaps& taps, const uint8_t* const src[kRows],
                                        uint8_t* const dst[kRows], int64_t x0, int64_t x1) {
  constexpr int kLanes = 8;
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (int64_t x = x0 / kLanes * kLanes; x < x1; x += kLanes) {
    const auto from = static_cast<int>(std::max<int64_t>(x0 - x, 0));
    const auto to = static_cast<int>(std::min<int64_t>(x1 - x, kLanes));
    const __m256i mask = _mm256_and_si256(_mm256_cmpgt_epi32(lane, _mm256_set1_epi32(from - 1)),
                                          _mm256_cmpgt_epi32(_mm256_set1_epi32(to), lane));
    const __m256i start = _mm256_maskload_epi32(taps.start + x, mask);
    const uint32_t* w = taps.packed + x / kBlock * taps.groups * 4 * kBlock + x % kBlock;
    for (int r = 0; r < kRows; ++r) {
      const __m256i v = single_avx2(taps, src[r], start, mask, w);
      const __m256i words = _mm256_packs_epi32(v, v);
      const __m256i bytes = _mm256_packus_epi16(words, words);
      const auto low = static_cast<uint32_t>(_mm256_extract_epi32(bytes, 0));
      const auto high = static_cast<uint32_t>(_mm256_extract_epi32(bytes, 4));
      const uint64_t eight = low | uint64_t{high} << 32;
      const uint64_t wanted = eight >> (8 * from);
      std::memcpy(dst[r] + x + from, &wanted, to - from);
    }
  }
}

template <int C>
void horizontal_avx2_any(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                         int64_t x1) {
  if (taps.groups == 1) return horizontal_avx2<C, 1>(taps, src, dst, x0, x1);
  if (taps.groups == 2) return horizontal_avx2<C, 2>(taps, src, dst, x0, x1);
  horizontal_avx2<C, 0>(taps, src, dst, x0, x1);
}

void horizontal_avx2_all(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                         int64_t x1) {
  switch (taps.channels) {
    case 1: return horizontal_avx2_single(taps, src, dst, x0, x1);
    case 2: return horizontal_avx2_any<2>(taps, src, dst, x0, x1);
    case 3: return horizontal_avx2_any<3>(taps, src, dst, x0, x1);
    default: return horizontal_avx2_any<4>(taps, src, dst, x0, x1);
  }
}

// 32 bytes of two rows, weighted, onto the sums.
STOKER_INLINE void add_pair(__m256i a, __m256i b, const uint32_t* w, __m256i low[4], __m256i high[4]) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
  const __m256i v[4] = {_mm256_unpacklo_epi8(ab0, zero), _mm256_unpackhi_epi8(ab0, zero),
                        _mm256_unpacklo_epi8(ab1, zero), _mm256_unpackhi_epi8(ab1, zero)};
  for (int q = 0; q < 4; ++q) {
    high[q] = _mm256_add_epi32(high[q], _mm256_madd_epi16(v[q], broadcast2(w)));
    low[q] = _mm256_add_epi32(low[q], _mm256_madd_epi16(v[q], broadcast2(w + 1)));
  }
}

// 32 bytes at row + i, or, when the row is shorter than that, its n bytes followed by zeros.
template <bool kShort>
STOKER_INLINE __m256i load32(const uint8_t* row, int64_t i, int64_t n) {
  if constexpr (!kShort) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + i));
  alignas(32) uint8_t copy[32] = {};
  std::memcpy(copy, row, n);
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(copy));
}

template <bool kShort>
STOKER_INLINE __m256i column_avx2(const uint8_t* const* rows, const uint32_t* packed, int64_t groups,
                                              int64_t i, int64_t n) {
  __m256i low[4], high[4];
  for (int q = 0; q < 4; ++q) {
    low[q] = _mm256_set1_epi32(kHalf);
    high[q] = _mm256_setzero_si256();
  }
  for (int64_t pair = 0; pair < 2 * groups; ++pair)
    add_pair(load32<kShort>(rows[2 * pair], i, n), load32<kShort>(rows[2 * pair + 1], i, n), packed + 2 * pair, low,
             high);
  const __m256i words0 = _mm256_packs_epi32(join_words(low[0], high[0]), join_words(low[1], high[1]));
  const __m256i words1 = _mm256_packs_epi32(join_words(low[2], high[2]), join_words(low[3], high[3]));
  return _mm256_packus_epi16(words0, words1);
}

STOKER_AVX2 void vertical_avx2(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out,
                               int64_t n) {
  constexpr int64_t kStep = 32;
  if (n < kStep) {
    alignas(32) uint8_t bytes[kStep];
    _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), column_avx2<true>(rows, packed, groups, 0, n));
    std::memcpy(out, bytes, n);
    return;
  }
  for (int64_t i = 0; i < n; i += kStep) {
    const int64_t at = std::min(i, n - kStep);  // the last vector overlaps its predecessor
    const __m256i bytes = column_avx2<false>(rows, packed, groups, at, n);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), bytes);
  }
}

}  // namespace

const Kernels kAvx2Kernels{Packing::Words, true, horizontal_avx2_all, vertical_avx2, nullptr, nullptr, nullptr};

}  // namespace stoker::resample

#endif  // __x86_64__
