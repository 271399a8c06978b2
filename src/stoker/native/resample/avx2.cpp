// SPDX-License-Identifier: Apache-2.0
// AVX2 kernels of 8-bit resampling. A 22-bit weight does not fit the multiply-add instruction (vpmaddwd), so pairs of
// taps are multiplied by the high half and the low half of the weight.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "resample/few_taps.hpp"
#include "resample/kernels.hpp"
#include "resample/shuffles.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::resample {

namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"
#include "base/vectors_avx2.ipp"

inline __m256i weights_of(const uint32_t* p) { return _mm256_set1_epi32(static_cast<int>(*p)); }
inline __m256i load_weights(const uint32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

struct Taps {
  explicit Taps(int channels)
      : first((__m256i)repeat_part(kShuffles[channels].first)),
        second((__m256i)repeat_part(kShuffles[channels].second)) {}
  __m256i first, second;
};

// The constructors are explicit: GCC compiles implicit ones for the baseline instruction set.
class Sums {
 public:
  Sums() : low_(_mm256_set1_epi32(kFixedHalf)), high_(_mm256_setzero_si256()) {}
  // Add a pair of taps per lane, as words.
  void add(__m256i x, __m256i high, __m256i low) {
    high_ = _mm256_add_epi32(high_, _mm256_madd_epi16(x, high));
    low_ = _mm256_add_epi32(low_, _mm256_madd_epi16(x, low));
  }
  void add_pixels(V<uint8_t> x, const Taps& taps, const uint32_t* w) {
    add(_mm256_shuffle_epi8((__m256i)x, taps.first), weights_of(w), weights_of(w + 1));
    add(_mm256_shuffle_epi8((__m256i)x, taps.second), weights_of(w + 2), weights_of(w + 3));
  }
  // Convert bytes t0 t1 t2 t3 of a dword to words (t0,t1) and (t2,t3).
  void add_lanes(V<int32_t> x, const uint32_t* w) {
    const __m256i v = (__m256i)x, even = _mm256_set1_epi32(0x00FF00FF);
    const __m256i t02 = _mm256_and_si256(v, even), t13 = _mm256_and_si256(_mm256_srli_epi16(v, 8), even);
    add(_mm256_blend_epi16(t02, _mm256_slli_epi32(t13, 16), 0xAA), load_weights(w), load_weights(w + kBlock));
    add(_mm256_blend_epi16(_mm256_srli_epi32(t02, 16), t13, 0xAA), load_weights(w + 2 * kBlock),
        load_weights(w + 3 * kBlock));
  }
  V<int32_t> value() const {
    return (V<int32_t>)_mm256_srai_epi32(_mm256_add_epi32(low_, _mm256_slli_epi32(high_, 15)), kWeightBits);
  }

 private:
  __m256i low_, high_;
};

class Columns {
 public:
  Columns() {}
  void add_pair(V<uint8_t> first, V<uint8_t> second, const uint32_t* w) {
    const __m256i a = (__m256i)first, b = (__m256i)second;
    const __m256i zero = _mm256_setzero_si256(), high = weights_of(w), low = weights_of(w + 1);
    const __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
    sums_[0].add(_mm256_unpacklo_epi8(ab0, zero), high, low);
    sums_[1].add(_mm256_unpackhi_epi8(ab0, zero), high, low);
    sums_[2].add(_mm256_unpacklo_epi8(ab1, zero), high, low);
    sums_[3].add(_mm256_unpackhi_epi8(ab1, zero), high, low);
  }
  V<uint8_t> bytes() const {
    return pack_bytes(sums_[0].value(), sums_[1].value(), sums_[2].value(), sums_[3].value());
  }

 private:
  Sums sums_[4];
};

inline V<int32_t> gather_lanes(const uint8_t* p, V<int32_t> start) {
  // A mask of all lanes that the compiler cannot see through. GCC drops a constant mask together with the zeroed
  // destination, and then every gather depends on the one before.
  const __m256i all = _mm256_cmpgt_epi32((__m256i)start, _mm256_set1_epi32(-1));
  return (V<int32_t>)_mm256_mask_i32gather_epi32(_mm256_setzero_si256(), reinterpret_cast<const int*>(p),
                                                 (__m256i)start, all, 1);
}
inline void store_saturated(uint8_t* p, V<int32_t> x) {
  const __m256i bytes = (__m256i)pack_bytes(x, x, x, x);
  const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), both);
}

#include "resample/rows.ipp"

}  // namespace

namespace {

template <int kLoads>
void pick_blocks(const PickBlocks& picks, const uint8_t* row, uint8_t* dst) {
  const auto* index = reinterpret_cast<const __m128i*>(picks.index);
  for (int64_t b = 0; b < picks.blocks; ++b, index += kLoads) {
    const auto* from = reinterpret_cast<const __m128i*>(row + picks.base[b]);
    __m128i bytes = _mm_shuffle_epi8(_mm_loadu_si128(from), _mm_loadu_si128(index));
    for (int l = 1; l < kLoads; ++l)
      bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(_mm_loadu_si128(from + l), _mm_loadu_si128(index + l)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + b * kPickBlock), bytes);
  }
}

void vertical_avx2(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out, int64_t n) {
  if (groups == 1) {
    int32_t weights[kGroup];
    unpack_group(Packing::Words, packed, weights);
    if (vertical_few_taps(Few::Any, rows, weights, out, n)) return;
  }
  vertical_any(rows, packed, groups, out, n);
}

bool plan_few(const RowTaps& taps, int64_t outputs, int64_t readable, uint8_t* room) {
  return plan_few_taps(Few::Any, Packing::Words, taps, outputs, readable, room);
}

void horizontal_few(const RowTaps&, const uint8_t* room, int64_t, int64_t, const uint8_t* const src[kRows],
                    uint8_t* const dst[kRows]) {
  horizontal_few_taps(room, src, dst);
}

}  // namespace

void pick_avx2(const PickBlocks& picks, const uint8_t* row, uint8_t* dst) {
  switch (picks.loads) {
    case 1: return pick_blocks<1>(picks, row, dst);
    case 2: return pick_blocks<2>(picks, row, dst);
    case 3: return pick_blocks<3>(picks, row, dst);
    default: return pick_blocks<4>(picks, row, dst);
  }
}

const Kernels kAvx2Kernels{Packing::Words, true,     horizontal_any, vertical_avx2,
                           few_taps_room,  plan_few, horizontal_few, pick_avx2};

}  // namespace stoker::resample

#include "base/target_end.hpp"
#endif
