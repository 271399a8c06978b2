// SPDX-License-Identifier: Apache-2.0
// AVX-512 VNNI kernels of 8-bit resampling. The instruction vpdpbusd multiplies bytes, four taps each, by signed bytes,
// here three base-256 digits of each weight. No other instruction set has a similar instruction, so these kernels share
// no source with others.
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
// GCC's own intrinsics start from a register that is uninitialized on purpose (bug 105593, fixed in GCC 13).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "resample/few_taps.hpp"
#include "resample/kernels.hpp"
#include "resample/shuffles.hpp"

#define STOKER_VNNI __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define STOKER_INLINE STOKER_VNNI __attribute__((always_inline)) inline

namespace stoker::resample {

namespace {

constexpr int kHalf = 1 << (kWeightBits - 1);

inline __m128i load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

STOKER_INLINE __m512i join_digits(__m512i low, __m512i middle, __m512i high) {
  const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high, 8), middle);
  return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), low), kWeightBits);
}

STOKER_INLINE __m512i broadcast(const uint32_t* p) { return _mm512_set1_epi32(static_cast<int>(*p)); }

// Sums over a known number of groups, by Horner's rule over the digits. The rounding half is added with the highest
// digit and shifted with it, so that no further addition is needed.
template <int kGroups>
STOKER_INLINE __m512i weigh(const __m512i* v, const uint32_t* w) {
  __m512i sum = _mm512_set1_epi32(kHalf >> 16);
  for (int digit = 2; digit >= 0; --digit) {
    for (int g = 0; g < kGroups; ++g) sum = _mm512_dpbusd_epi32(sum, v[g], broadcast(w + 4 * g + digit));
    if (digit > 0) sum = _mm512_slli_epi32(sum, 8);
  }
  return _mm512_srai_epi32(sum, kWeightBits);
}

STOKER_INLINE __m512i load_rows(const uint8_t* const src[kRows], int64_t at) {
  const __m256i a = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(src[0] + at)), load16(src[1] + at), 1);
  const __m256i b = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(src[2] + at)), load16(src[3] + at), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

// Store one lane per row, at offset `at` of each row.
STOKER_INLINE void store_lanes(__m512i v, uint8_t* const dst[kRows], int64_t at) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst[0] + at), _mm512_castsi512_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst[1] + at), _mm512_extracti32x4_epi32(v, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst[2] + at), _mm512_extracti32x4_epi32(v, 2));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst[3] + at), _mm512_extracti32x4_epi32(v, 3));
}

// Compute one output pixel of four rows: 16 sums, one row per 128-bit lane. kGroups 0: any number of groups.
template <int C, int kGroups>
STOKER_INLINE __m512i pixel_vnni(const RowTaps& taps, const uint8_t* const src[kRows], int64_t x, __m512i shuffle) {
  const int64_t groups = kGroups ? kGroups : taps.groups;
  const int64_t at = int64_t{taps.start[x]} * C;
  const uint32_t* w = taps.packed + x * groups * 4;
  if constexpr (kGroups > 0) {
    __m512i v[kGroups];
    for (int g = 0; g < kGroups; ++g) v[g] = _mm512_shuffle_epi8(load_rows(src, at + g * kGroup * C), shuffle);
    return weigh<kGroups>(v, w);
  }
  __m512i low = _mm512_set1_epi32(kHalf), middle = _mm512_setzero_si512(), high = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; ++g, w += 4) {
    const __m512i v = _mm512_shuffle_epi8(load_rows(src, at + g * kGroup * C), shuffle);
    low = _mm512_dpbusd_epi32(low, v, broadcast(w));
    middle = _mm512_dpbusd_epi32(middle, v, broadcast(w + 1));
    high = _mm512_dpbusd_epi32(high, v, broadcast(w + 2));
  }
  return join_digits(low, middle, high);
}

template <int C, int kGroups>
STOKER_VNNI void horizontal_vnni(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows],
                                 int64_t x0, int64_t x1) {
  const __m512i shuffle = _mm512_broadcast_i32x4(load16(kShuffles[C].digits));
  const __m512i finish = _mm512_broadcast_i32x4(load16(kShuffles[C].finish));
  for (int64_t x = x0; x < x1; x += 4) {
    __m512i v[4];
    for (int j = 0; j < 4; ++j) v[j] = pixel_vnni<C, kGroups>(taps, src, std::min(x + j, x1 - 1), shuffle);
    const __m512i words01 = _mm512_packs_epi32(v[0], v[1]), words23 = _mm512_packs_epi32(v[2], v[3]);
    const __m512i bytes = _mm512_shuffle_epi8(_mm512_packus_epi16(words01, words23), finish);
    store_lanes(bytes, dst, x * C);
  }
}

// A single channel needs no regrouping: four taps are four adjacent bytes, gathered for 16 outputs at a time.
STOKER_VNNI void horizontal_vnni_single(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows],
                                        int64_t x0, int64_t x1) {
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t block = x0 / kBlock; block * kBlock < x1; ++block) {
    const int64_t x = block * kBlock;
    const int64_t from = std::max<int64_t>(x0 - x, 0), to = std::min<int64_t>(x1 - x, kBlock);
    const auto mask = static_cast<__mmask16>((0xFFFFu << from) & (0xFFFFu >> (kBlock - to)));
    const __m512i start = _mm512_maskz_loadu_epi32(mask, taps.start + x);
    const uint32_t* weights = taps.packed + block * taps.groups * 4 * kBlock;
    for (int r = 0; r < kRows; ++r) {
      __m512i low = _mm512_set1_epi32(kHalf), middle = zero, high = zero;
      const uint32_t* w = weights;
      for (int64_t g = 0; g < taps.groups; ++g, w += 4 * kBlock) {
        const __m512i v = _mm512_mask_i32gather_epi32(zero, mask, start, src[r] + g * kGroup, 1);
        low = _mm512_dpbusd_epi32(low, v, _mm512_loadu_si512(w));
        middle = _mm512_dpbusd_epi32(middle, v, _mm512_loadu_si512(w + kBlock));
        high = _mm512_dpbusd_epi32(high, v, _mm512_loadu_si512(w + 2 * kBlock));
      }
      const __m512i value = _mm512_max_epi32(join_digits(low, middle, high), zero);
      _mm_mask_storeu_epi8(dst[r] + x, mask, _mm512_cvtusepi32_epi8(value));
    }
  }
}

template <int C>
STOKER_VNNI void horizontal_vnni_any(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows],
                                     int64_t x0, int64_t x1) {
  if (taps.groups == 1) return horizontal_vnni<C, 1>(taps, src, dst, x0, x1);
  if (taps.groups == 2) return horizontal_vnni<C, 2>(taps, src, dst, x0, x1);
  horizontal_vnni<C, 0>(taps, src, dst, x0, x1);
}

void horizontal_vnni_all(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                         int64_t x1) {
  switch (taps.channels) {
    case 1: return horizontal_vnni_single(taps, src, dst, x0, x1);
    case 2: return horizontal_vnni_any<2>(taps, src, dst, x0, x1);
    case 3: return horizontal_vnni_any<3>(taps, src, dst, x0, x1);
    default: return horizontal_vnni_any<4>(taps, src, dst, x0, x1);
  }
}

// ---------------------------------------------------------------- blocks of four outputs
//
// When four neighbouring outputs read from within 64 bytes, one load and two shuffles, whose patterns do not depend on
// the row, put their taps into the four lanes. The shuffles and the weights of a block are kept in registers for all
// rows of the batch.

constexpr int kBlockOutputs = 4;
constexpr int kMaxBlockGroups = 2;

struct alignas(64) BlockGroup {
  uint32_t index[16];      // vpermd: the four dwords with an output's taps
  uint8_t shuffle[64];     // pshufb: moves a channel's taps into its dword
  uint32_t weight[3][16];  // by digit
};

int64_t blocks_of(int64_t outputs) { return (outputs + kBlockOutputs - 1) / kBlockOutputs; }

// The plan's memory holds the first byte of each block, then the groups of each block.
int64_t bases_bytes(int64_t outputs) { return (blocks_of(outputs) * int64_t{sizeof(int32_t)} + 63) / 64 * 64; }

int64_t digits_room(int64_t outputs) {
  return bases_bytes(outputs) + blocks_of(outputs) * kMaxBlockGroups * int64_t{sizeof(BlockGroup)};
}

void plan_lane(const RowTaps& taps, int64_t x, int64_t g, int32_t offset, int lane, BlockGroup& group) {
  const auto put = [lane](void* to, __m128i v) { _mm_store_si128(static_cast<__m128i*>(to) + lane, v); };
  put(group.index, _mm_add_epi32(_mm_set1_epi32(offset / 4), _mm_setr_epi32(0, 1, 2, 3)));
  const __m128i pattern = load16(kShuffles[taps.channels].digits);  // the addition keeps the bits that mark zero bytes
  put(group.shuffle, _mm_add_epi8(pattern, _mm_set1_epi8(static_cast<char>(offset % 4))));
  const uint32_t* w = taps.packed + (x * taps.groups + g) * 4;
  for (int digit = 0; digit < 3; ++digit) put(group.weight[digit], _mm_set1_epi32(static_cast<int>(w[digit])));
}

bool plan_digits(const RowTaps& taps, int64_t outputs, uint8_t* room) {
  if (taps.groups > kMaxBlockGroups || taps.channels < 2 || taps.channels > 4) return false;
  auto* base = reinterpret_cast<int32_t*>(room);
  auto* group = reinterpret_cast<BlockGroup*>(room + bases_bytes(outputs));
  for (int64_t b = 0; b < blocks_of(outputs); ++b) {
    const int64_t first = b * kBlockOutputs, last = std::min(first + kBlockOutputs, outputs) - 1;
    const int32_t from = std::min(taps.start[first], taps.start[last]);
    const int32_t to = std::max(taps.start[first], taps.start[last]);
    const int64_t reach = (to - from + (taps.groups - 1) * kGroup) * int64_t{taps.channels};
    if (reach / 4 + 4 > 16) return false;
    base[b] = from * taps.channels;
    for (int64_t g = 0; g < taps.groups; ++g, ++group)
      for (int lane = 0; lane < kBlockOutputs; ++lane) {
        const int64_t x = std::min(first + lane, last);
        const auto skipped = static_cast<int32_t>(g * kGroup);
        plan_lane(taps, x, g, (taps.start[x] - from + skipped) * taps.channels, lane, *group);
      }
  }
  return true;
}

STOKER_INLINE __m512i load_line(const uint8_t* p, int64_t readable) {
  if (readable >= 64) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi8((__mmask64{1} << readable) - 1, p);
}

// Compute four outputs of one row, one per 128-bit lane.
template <int kGroups>
STOKER_INLINE __m512i weigh_block(__m512i line, const BlockGroup* group) {
  __m512i v[kGroups];
  for (int g = 0; g < kGroups; ++g)
    v[g] = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(_mm512_load_si512(group[g].index), line),
                               _mm512_load_si512(group[g].shuffle));
  __m512i sum = _mm512_set1_epi32(kHalf >> 16);
  for (int digit = 2; digit >= 0; --digit) {
    for (int g = 0; g < kGroups; ++g) sum = _mm512_dpbusd_epi32(sum, v[g], _mm512_load_si512(group[g].weight[digit]));
    if (digit > 0) sum = _mm512_slli_epi32(sum, 8);
  }
  return _mm512_srai_epi32(sum, kWeightBits);
}

template <int kGroups>
STOKER_VNNI void horizontal_blocks(const RowTaps& taps, const uint8_t* room, int64_t outputs, int64_t readable,
                                   const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  const auto* base = reinterpret_cast<const int32_t*>(room);
  const auto* group = reinterpret_cast<const BlockGroup*>(room + bases_bytes(outputs));
  // After packing, lane j holds output j of all rows; the permutation makes lane r hold all outputs of row r.
  const __m512i transpose = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i finish = _mm512_broadcast_i32x4(load16(kShuffles[taps.channels].finish));
  const int64_t step = kBlockOutputs * taps.channels;
  for (int64_t b = 0, at = 0; b < blocks_of(outputs); ++b, at += step, group += kGroups) {
    const int64_t left = readable - base[b];
    __m512i v[kRows];
    for (int r = 0; r < kRows; ++r) v[r] = weigh_block<kGroups>(load_line(src[r] + base[b], left), group);
    const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    const __m512i rows = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(transpose, bytes), finish);
    store_lanes(rows, dst, at);
  }
}

void horizontal_blocks_any(const RowTaps& taps, const uint8_t* room, int64_t outputs, int64_t readable,
                           const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  if (taps.groups == 1) return horizontal_blocks<1>(taps, room, outputs, readable, src, dst);
  horizontal_blocks<2>(taps, room, outputs, readable, src, dst);
}

// The form with words for two taps and for weights of few bits; the first byte of the memory of a plan says which it is.
constexpr int64_t kChoice = 64;

int64_t block_room(int64_t outputs) { return kChoice + std::max(few_taps_room(outputs), digits_room(outputs)); }

bool plan_blocks(const RowTaps& taps, int64_t outputs, int64_t readable, uint8_t* room) {
  *room = plan_few_taps(Few::NoSums, Packing::Digits, taps, outputs, readable, room + kChoice);
  return *room || plan_digits(taps, outputs, room + kChoice);
}

void horizontal_planned(const RowTaps& taps, const uint8_t* room, int64_t outputs, int64_t readable,
                        const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  if (*room) horizontal_few_taps(room + kChoice, src, dst);
  else horizontal_blocks_any(taps, room + kChoice, outputs, readable, src, dst);
}

// ---------------------------------------------------------------- vertical

// Four vectors of 16 groups of four bytes, one byte from each row: 64 columns.
struct Columns {
  __m512i v[4];
};

template <bool kWhole>
STOKER_INLINE __m512i load64(const uint8_t* p, __mmask64 mask) {
  return kWhole ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi8(mask, p);
}

template <bool kWhole>
STOKER_INLINE Columns load_columns(const uint8_t* const* row, int64_t i, __mmask64 mask) {
  const __m512i a = load64<kWhole>(row[0] + i, mask), b = load64<kWhole>(row[1] + i, mask);
  const __m512i c = load64<kWhole>(row[2] + i, mask), d = load64<kWhole>(row[3] + i, mask);
  const __m512i ab0 = _mm512_unpacklo_epi8(a, b), ab1 = _mm512_unpackhi_epi8(a, b);
  const __m512i cd0 = _mm512_unpacklo_epi8(c, d), cd1 = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(ab0, cd0), _mm512_unpackhi_epi16(ab0, cd0), _mm512_unpacklo_epi16(ab1, cd1),
           _mm512_unpackhi_epi16(ab1, cd1)}};
}

// For any number of groups: one sum per digit.
template <bool kWhole>
STOKER_INLINE void weigh_columns(const uint8_t* const* rows, const uint32_t* w, int64_t groups, int64_t i,
                                 __mmask64 mask, __m512i value[4]) {
  __m512i low[4], middle[4], high[4];
  for (int q = 0; q < 4; ++q) {
    low[q] = _mm512_set1_epi32(kHalf);
    middle[q] = high[q] = _mm512_setzero_si512();
  }
  for (int64_t g = 0; g < groups; ++g, w += 4) {
    const Columns columns = load_columns<kWhole>(rows + g * kGroup, i, mask);
    for (int q = 0; q < 4; ++q) {
      low[q] = _mm512_dpbusd_epi32(low[q], columns.v[q], broadcast(w));
      middle[q] = _mm512_dpbusd_epi32(middle[q], columns.v[q], broadcast(w + 1));
      high[q] = _mm512_dpbusd_epi32(high[q], columns.v[q], broadcast(w + 2));
    }
  }
  for (int q = 0; q < 4; ++q) value[q] = join_digits(low[q], middle[q], high[q]);
}

// Compute 64 bytes of one output row. Packing works within lanes like the unpacking before, so it restores the order of
// the bytes.
template <int kGroups, bool kWhole>
STOKER_INLINE __m512i column_vnni(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, int64_t i,
                                  __mmask64 mask) {
  __m512i value[4];
  if constexpr (kGroups > 0) {
    Columns columns[kGroups];
    for (int g = 0; g < kGroups; ++g) columns[g] = load_columns<kWhole>(rows + g * kGroup, i, mask);
    for (int q = 0; q < 4; ++q) {
      __m512i v[kGroups];
      for (int g = 0; g < kGroups; ++g) v[g] = columns[g].v[q];
      value[q] = weigh<kGroups>(v, packed);
    }
  } else {
    weigh_columns<kWhole>(rows, packed, groups, i, mask, value);
  }
  return _mm512_packus_epi16(_mm512_packs_epi32(value[0], value[1]), _mm512_packs_epi32(value[2], value[3]));
}

template <int kGroups>
STOKER_VNNI void vertical_vnni(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out,
                               int64_t n) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64)
    _mm512_storeu_si512(out + i, column_vnni<kGroups, true>(rows, packed, groups, i, ~__mmask64{0}));
  if (i == n) return;
  const __mmask64 mask = (__mmask64{1} << (n - i)) - 1;
  _mm512_mask_storeu_epi8(out + i, mask, column_vnni<kGroups, false>(rows, packed, groups, i, mask));
}

void vertical_vnni_any(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out, int64_t n) {
  if (groups == 1) {
    int32_t weights[kGroup];
    unpack_group(Packing::Digits, packed, weights);
    if (vertical_few_taps(Few::NoSums, rows, weights, out, n)) return;
    return vertical_vnni<1>(rows, packed, groups, out, n);
  }
  if (groups == 2) return vertical_vnni<2>(rows, packed, groups, out, n);
  vertical_vnni<0>(rows, packed, groups, out, n);
}

}  // namespace

const Kernels kVnniKernels{Packing::Digits, true,        horizontal_vnni_all, vertical_vnni_any,
                           block_room,      plan_blocks, horizontal_planned,  pick_avx2};

}  // namespace stoker::resample

#endif  // __x86_64__
