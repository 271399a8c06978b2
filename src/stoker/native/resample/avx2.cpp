// SPDX-License-Identifier: Apache-2.0
// AVX2 kernels of 8-bit resampling. A 22-bit weight does not fit the multiply-add instruction (vpmaddwd), so pairs of
// taps are multiplied by the high half and the low half of the weight.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

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

// ---------------------------------------------------------------- blocks of outputs of two taps
//
// Linear filters without antialiasing have at most two taps. For a part of 16 bytes of the destination, byte shuffles of a
// few loads bring the first taps of all bytes together, and the second ones; shuffles and weights of a part do not depend on
// the row. Two neighbouring parts, each with loads of its own, make a vector.

constexpr int64_t kPartBytes = 16, kMostPartLoads = 3, kPartPixels = 4;
constexpr int64_t kBlockBytes = 2 * kPartBytes;

struct TwoTapBlock {
  int32_t base[2];  // of each part, in bytes
  int64_t loads;
  alignas(32) uint8_t first[kMostPartLoads][kBlockBytes], second[kMostPartLoads][kBlockBytes];
  // Of destination bytes 4 k .. 4 k + 3 of both parts, as pack_words() does: high parts, low parts.
  alignas(32) uint32_t high[kPartPixels][8], low[kPartPixels][8];
};

int64_t two_tap_blocks(const RowTaps& taps, int64_t outputs) {
  return (outputs * taps.channels + kBlockBytes - 1) / kBlockBytes;
}
int64_t two_tap_room(int64_t outputs) {
  constexpr int64_t kMostChannels = 4;
  return (outputs * kMostChannels + kBlockBytes - 1) / kBlockBytes * int64_t{sizeof(TwoTapBlock)};
}

// The weight of tap t of an output in `high` and `low`, which have two words each.
inline bool has_weight(uint32_t high, uint32_t low, int t) { return ((high | low) >> (16 * t) & 0xFFFF) != 0; }

// Plan the bytes from `begin` on of a destination row as part `part` of a block. Starts are monotone, so that the first
// and the last pixel are the outermost ones. Return false if they are too far apart.
bool plan_part(const RowTaps& taps, int64_t outputs, int64_t begin, int part, TwoTapBlock& block) {
  const int64_t pixel = taps.channels, end = std::min(begin + kPartBytes, outputs * pixel);
  block.base[part] = 0;
  if (begin >= end) return true;
  const int64_t one = taps.start[begin / pixel], other = taps.start[(end - 1) / pixel];
  const int64_t base = std::min(one, other) * pixel, reach = (std::max(one, other) + 2) * pixel - base;
  const int64_t loads = (reach + kPartBytes - 1) / kPartBytes;
  if (loads > kMostPartLoads) return false;
  block.base[part] = static_cast<int32_t>(base);
  block.loads = std::max(block.loads, loads);
  int64_t x = begin / pixel, channel = begin % pixel;
  for (int64_t at = 0; at < end - begin; ++at) {
    const uint32_t high = taps.packed[4 * x], low = taps.packed[4 * x + 1];
    const int64_t from = taps.start[x] * pixel + channel - base, next = from + pixel, to = part * kPartBytes + at;
    block.first[from / kPartBytes][to] = static_cast<uint8_t>(from % kPartBytes);
    // A tap without weight may lie beyond the row.
    if (has_weight(high, low, 1)) block.second[next / kPartBytes][to] = static_cast<uint8_t>(next % kPartBytes);
    block.high[at / 4][part * 4 + at % 4] = high;
    block.low[at / 4][part * 4 + at % 4] = low;
    if (++channel == pixel) channel = 0, ++x;
  }
  return true;
}

bool plan_two_taps(const RowTaps& taps, int64_t outputs, uint8_t* room) {
  if (taps.groups != 1 || taps.channels < 2 || taps.channels > 4) return false;
  for (int64_t x = 0; x < outputs; ++x)
    if (taps.packed[4 * x + 2] | taps.packed[4 * x + 3]) return false;
  auto* block = reinterpret_cast<TwoTapBlock*>(room);
  for (int64_t b = 0; b < two_tap_blocks(taps, outputs); ++b, ++block) {
    std::memset(block, 0, sizeof *block);
    std::memset(block->first, 0x80, 2 * sizeof block->first);
    for (int part = 0; part < 2; ++part)
      if (!plan_part(taps, outputs, b * kBlockBytes + part * kPartBytes, part, *block)) return false;
  }
  return true;
}

template <int64_t kLoads>
inline void two_taps(const TwoTapBlock& block, const uint8_t* const (&from)[2], uint8_t* to) {
  V<uint8_t> first{}, second{};
  for (int64_t l = 0; l < kLoads; ++l) {
    const V<uint8_t> bytes = load_parts({from[0] + l * kPartBytes, from[1] + l * kPartBytes});
    first |= shuffle_parts(bytes, load_vector<uint8_t>(block.first[l]));
    second |= shuffle_parts(bytes, load_vector<uint8_t>(block.second[l]));
  }
  const __m256i a = (__m256i)first, b = (__m256i)second, zero = _mm256_setzero_si256();
  const __m256i pairs[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
  V<int32_t> value[kPartPixels];
  for (int k = 0; k < kPartPixels; ++k) {
    Sums sums;
    sums.add(k % 2 ? _mm256_unpackhi_epi8(pairs[k / 2], zero) : _mm256_unpacklo_epi8(pairs[k / 2], zero),
             load_weights(block.high[k]), load_weights(block.low[k]));
    value[k] = sums.value();
  }
  store_vector<uint8_t>(to, pack_bytes(value[0], value[1], value[2], value[3]));
}

void horizontal_two_taps(const RowTaps& taps, const uint8_t* room, int64_t outputs, int64_t readable,
                         const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  const auto* block = reinterpret_cast<const TwoTapBlock*>(room);
  for (int64_t b = 0; b < two_tap_blocks(taps, outputs); ++b, ++block) {
    const int64_t read = block->loads * kPartBytes;
    for (int r = 0; r < kRows; ++r) {
      uint8_t copy[2][kMostPartLoads * kPartBytes];
      const uint8_t* from[2];
      for (int part = 0; part < 2; ++part) {
        from[part] = src[r] + block->base[part];
        const int64_t left = readable - block->base[part];
        if (left >= read) continue;
        std::memset(copy[part], 0, sizeof copy[part]);
        std::memcpy(copy[part], from[part], static_cast<size_t>(std::max<int64_t>(left, 0)));
        from[part] = copy[part];
      }
      uint8_t* to = dst[r] + b * kBlockBytes;
      if (block->loads == 1) two_taps<1>(*block, from, to);
      else if (block->loads == 2) two_taps<2>(*block, from, to);
      else two_taps<3>(*block, from, to);
    }
  }
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

const Kernels kAvx2Kernels{Packing::Words, true,          horizontal_any,      vertical_any,
                           two_tap_room,   plan_two_taps, horizontal_two_taps, pick_avx2};

}  // namespace stoker::resample

#include "base/target_end.hpp"
#endif
