// SPDX-License-Identifier: Apache-2.0
// Block kernels for AVX-512 (F, BW, VL, DQ).
#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "pixel/kernels.hpp"
#include "shared/element_random.hpp"
#include "shared/fused.hpp"
#include "shared/half.hpp"
#include "shared/xmath.hpp"

#include "base/target_begin_avx512.hpp"

#include "shared/element_normal.hpp"  // its vectors are those of the target

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 64
#include "base/vectors.ipp"
#include "base/vectors_avx512.ipp"

#include "pixel/moves.ipp"

#include "pixel/mixes.ipp"

// A table of 256 words of 32 bits in sixteen vectors. A two-vector permutation finds the word among 32; the upper three
// bits of the byte select one of the eight permutations. Gathers are not used: microcode fixes for their data leaks
// made them slow.
template <bool Past>
void lookup_words(void* dst, const uint8_t* src, const void* table, int n) {
  if (Past && reinterpret_cast<uintptr_t>(dst) % 64) return lookup_words<false>(dst, src, table, n);
  auto* d = static_cast<uint8_t*>(dst);
  const auto* t = static_cast<const uint8_t*>(table);
  __m512i words[16];
  for (int k = 0; k < 16; ++k) words[k] = _mm512_loadu_si512(t + 64 * k);
  const __m512i bit5 = _mm512_set1_epi32(32), bit6 = _mm512_set1_epi32(64), bit7 = _mm512_set1_epi32(128);
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512i v = _mm512_maskz_cvtepu8_epi32(0xFFFF, load128(src + i));
    const __mmask16 m5 = _mm512_test_epi32_mask(v, bit5), m6 = _mm512_test_epi32_mask(v, bit6);
    const auto pair = [&](int k) {
      return _mm512_mask_blend_epi32(m5, _mm512_permutex2var_epi32(words[4 * k], v, words[4 * k + 1]),
                                     _mm512_permutex2var_epi32(words[4 * k + 2], v, words[4 * k + 3]));
    };
    const __m512i low = _mm512_mask_blend_epi32(m6, pair(0), pair(1));
    const __m512i high = _mm512_mask_blend_epi32(m6, pair(2), pair(3));
    const __m512i found = _mm512_mask_blend_epi32(_mm512_test_epi32_mask(v, bit7), low, high);
    if constexpr (Past) _mm512_stream_si512(reinterpret_cast<__m512i*>(d + 4 * i), found);
    else _mm512_storeu_si512(d + 4 * i, found);
  }
  for (; i < n; ++i) std::memcpy(d + 4 * i, t + 4 * src[i], 4);
}

}  // namespace

void fill_avx512(Kernels& k) {
  fill_moves(k);
  k.mix_pixels = mix_pixels;
  k.lookup[4] = lookup_words<false>;
  k.lookup_past[4] = lookup_words<true>;
  k.store_alignment = 64;  // every unaligned vector crosses a cache line
}

}  // namespace stoker::pixel

#include "base/target_end.hpp"
#endif
