// SPDX-License-Identifier: Apache-2.0
#include "torch/resize_wide.hpp"

#include <algorithm>
#include <limits>

#include "base/simd.hpp"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
// GCC's own intrinsics start from a register that is uninitialized on purpose (bug 105593, fixed in GCC 13).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#define STOKER_WIDEST __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))
#endif

namespace stoker::torch_resize {

namespace {

constexpr int64_t kChannels = 3, kLoad = 64, kMostOutputs = 5;
constexpr int64_t kStore = 3;  // cost of storing the outputs of a group, in pairs of taps

// Return whether all groups of `outputs` outputs read `taps_read` taps from within one load.
bool fits(const Taps& taps, int64_t first, int64_t end, int64_t outputs, int64_t taps_read) {
  for (int64_t x = first; x < end; x += outputs) {
    const int64_t last = std::min(x + outputs, end) - 1;
    const int32_t apart = taps.start[static_cast<size_t>(last)] - taps.start[static_cast<size_t>(x)];
    if ((apart + taps_read) * kChannels > kLoad) return false;
  }
  return true;
}

}  // namespace

Groups::Groups(const Taps& taps, int64_t first, int64_t count, int64_t begin) {
  const int64_t end = first + count;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t n = kMostOutputs; n > 0; --n) {
    int64_t together = taps.most;
    while (together > 0 && !fits(taps, first, end, n, 2 * together)) --together;
    if (together == 0) continue;
    const int64_t loads = (taps.most + together - 1) / together;
    const int64_t cost = (count + n - 1) / n * (taps.most + kStore + loads);
    if (cost < least) least = cost, outputs = n, pairs_per_load = together;
  }
  for (int64_t x = first; x < end; x += outputs) {
    const int64_t from = taps.start[static_cast<size_t>(x)];
    Group group{};
    group.base = static_cast<int32_t>((from - begin) * kChannels);
    const size_t pair = pairs.size();
    pairs.resize(pair + static_cast<size_t>(taps.most));
    for (int64_t j = 0; j < outputs && x + j < end; ++j) {
      const int64_t offset = (taps.start[static_cast<size_t>(x + j)] - from) * kChannels;
      for (int64_t c = 0; c < kChannels; ++c) {
        const int64_t lane = j * kChannels + c;
        group.order[4 * lane] = static_cast<uint8_t>(offset + c);
        group.order[4 * lane + 2] = static_cast<uint8_t>(offset + kChannels + c);
        for (int64_t k = 0; k < taps.most; ++k)
          pairs[pair + static_cast<size_t>(k)].weights[lane] = taps.pairs[static_cast<size_t>((x + j) * taps.most + k)];
      }
    }
    const int64_t last_load = (taps.most - 1) / pairs_per_load * pairs_per_load;
    reach = std::max(reach, group.base + last_load * 2 * kChannels + kLoad);
    groups.push_back(group);
  }
}

#if defined(__x86_64__)

bool has_wide_resize() {
  static const bool supported = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
  return supported && isa() == Isa::AVX512;
}

namespace {

constexpr __mmask64 kLowBytes = 0x5555555555555555;  // of 16-bit words

// Exactly `kPairs` pairs that one load has, or any number (0). The rows share the loads of weights and the orders.
template <int kPairs>
STOKER_WIDEST void across(const Groups& groups, int64_t any, int precision, const uint8_t* const* rows,
                          uint8_t* const* to) {
  const int64_t pairs = kPairs ? kPairs : any, per_load = kPairs ? kPairs : groups.pairs_per_load;
  const int64_t step = groups.outputs * kChannels;
  const __m512i half = _mm512_set1_epi32(precision ? 1 << (precision - 1) : 0), zero = _mm512_setzero_si512();
  const __m512i advance = _mm512_set1_epi8(2 * kChannels);
  const __m128i shift = _mm_cvtsi32_si128(precision);
  const Groups::Pairs* weights = groups.pairs.data();
  int64_t at = 0;
  for (const Groups::Group& group : groups.groups) {
    __m512i sum[kWideRows];
    for (int i = 0; i < kWideRows; ++i) sum[i] = half;
    int64_t from = group.base;
    for (int64_t left = pairs; left > 0; left -= per_load) {
      __m512i order = _mm512_load_si512(group.order), line[kWideRows];
      for (int i = 0; i < kWideRows; ++i) line[i] = _mm512_loadu_si512(rows[i] + from);
      from += per_load * 2 * kChannels;
      const int64_t count = std::min(left, per_load);
#pragma GCC unroll 7
      for (int64_t k = 0; k < count; ++k, ++weights) {
        const __m512i weight = _mm512_load_si512(weights->weights);
        for (int i = 0; i < kWideRows; ++i)
          sum[i] = _mm512_dpwssd_epi32(sum[i], _mm512_maskz_permutexvar_epi8(kLowBytes, order, line[i]), weight);
        order = _mm512_add_epi8(order, advance);
      }
    }
    for (int i = 0; i < kWideRows; ++i) {
      const __m512i value = _mm512_max_epi32(_mm512_sra_epi32(sum[i], shift), zero);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to[i] + at), _mm512_cvtusepi32_epi8(value));
    }
    at += step;
  }
}

STOKER_WIDEST inline __m512i widen(const uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

template <int kPairs>
STOKER_WIDEST void down(const uint8_t* const* rows, const int32_t* pairs, int64_t any, int precision, int64_t n,
                        uint8_t* to) {
  const int64_t count = kPairs ? kPairs : any;
  const __m512i half = _mm512_set1_epi32(precision ? 1 << (precision - 1) : 0);
  const __m128i shift = _mm_cvtsi32_si128(precision);
  for (int64_t i = 0; i < n; i += 32) {
    __m512i low = half, high = half;
    for (int64_t k = 0; k < count; ++k) {
      const __m512i a = widen(rows[2 * k] + i), b = widen(rows[2 * k + 1] + i), w = _mm512_set1_epi32(pairs[k]);
      low = _mm512_dpwssd_epi32(low, _mm512_unpacklo_epi16(a, b), w);
      high = _mm512_dpwssd_epi32(high, _mm512_unpackhi_epi16(a, b), w);
    }
    // packing works within lanes like the unpacking before, so the words are in order again
    const __m512i words = _mm512_packs_epi32(_mm512_sra_epi32(low, shift), _mm512_sra_epi32(high, shift));
    const __m512i positive = _mm512_max_epi16(words, _mm512_setzero_si512());
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm512_cvtusepi16_epi8(positive));
  }
}

constexpr int64_t kBytesAhead = 4096;
constexpr int64_t kPixels = 16;                      // of four bytes in a vector
constexpr __mmask64 kThreeBytes = (1ULL << 48) - 1;  // of each of them
struct alignas(64) PixelOrder {
  uint8_t order[64] = {};
  constexpr PixelOrder() {
    for (int i = 0; i < 48; ++i) order[i] = static_cast<uint8_t>(i / 3 * 4 + i % 3);
  }
};
constexpr PixelOrder kPixelOrder;

STOKER_WIDEST void drop_fourth(const uint8_t* from, int64_t count, uint8_t* to) {
  const __m512i order = _mm512_load_si512(kPixelOrder.order);
  int64_t x = 0;
  // A whole store is faster than a masked one. The next pixels overwrite its last 16 bytes.
  for (; x + 2 * kPixels <= count; x += kPixels) {
    __builtin_prefetch(from + 4 * x + kBytesAhead);
    _mm512_storeu_si512(to + 3 * x, _mm512_permutexvar_epi8(order, _mm512_loadu_si512(from + 4 * x)));
  }
  for (; x < count; x += kPixels) {
    const int64_t left = count - x < kPixels ? count - x : kPixels;
    const __mmask64 read = ~0ULL >> (64 - (4 * left - 1)), written = kThreeBytes >> (48 - 3 * left);
    _mm512_mask_storeu_epi8(to + 3 * x, written,
                            _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(read, from + 4 * x)));
  }
}

}  // namespace

void drop_fourth_wide(const uint8_t* from, int64_t count, uint8_t* to) { drop_fourth(from, count, to); }

void across_wide(const Groups& groups, int64_t pairs, int precision, const uint8_t* const* rows, uint8_t* const* to) {
  switch (groups.pairs_per_load == pairs ? pairs : 0) {
    case 1: return across<1>(groups, pairs, precision, rows, to);
    case 2: return across<2>(groups, pairs, precision, rows, to);
    case 3: return across<3>(groups, pairs, precision, rows, to);
    case 4: return across<4>(groups, pairs, precision, rows, to);
    case 5: return across<5>(groups, pairs, precision, rows, to);
    case 6: return across<6>(groups, pairs, precision, rows, to);
    case 7: return across<7>(groups, pairs, precision, rows, to);
    default: return across<0>(groups, pairs, precision, rows, to);
  }
}

void down_wide(const uint8_t* const* rows, const int32_t* pairs, int64_t count, int precision, int64_t n, uint8_t* to) {
  switch (count) {
    case 1: return down<1>(rows, pairs, count, precision, n, to);
    case 2: return down<2>(rows, pairs, count, precision, n, to);
    case 3: return down<3>(rows, pairs, count, precision, n, to);
    case 4: return down<4>(rows, pairs, count, precision, n, to);
    case 5: return down<5>(rows, pairs, count, precision, n, to);
    default: return down<0>(rows, pairs, count, precision, n, to);
  }
}

#else

bool has_wide_resize() { return false; }
void drop_fourth_wide(const uint8_t*, int64_t, uint8_t*) {}
void across_wide(const Groups&, int64_t, int, const uint8_t* const*, uint8_t* const*) {}
void down_wide(const uint8_t* const*, const int32_t*, int64_t, int, int64_t, uint8_t*) {}

#endif

}  // namespace stoker::torch_resize
