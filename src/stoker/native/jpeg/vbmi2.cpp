// SPDX-License-Identifier: Apache-2.0
// Colour conversion, unstuffing and table building with AVX-512, VBMI2 and VNNI, based on byte permutations and
// compression.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "jpeg/x86.hpp"
#include "shared/jpeg_arithmetic.cuh"

#include "base/target_begin_vbmi2.hpp"

namespace stoker::jpeg {
namespace {

inline __m512i load64(const void* p) { return _mm512_loadu_si512(p); }
inline __m256i load32(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

// Byte j of block k belongs to pixel (32 k + j) / 3 and plane (32 k + j) % 3.
struct Spread {
  alignas(32) uint8_t pixel[3][32];
  uint32_t plane[3][3];  // [plane][block]
  constexpr Spread() : pixel(), plane() {
    for (int n = 0; n < 96; ++n) {
      pixel[n / 32][n % 32] = static_cast<uint8_t>(n / 3);
      plane[n % 3][n / 32] |= uint32_t{1} << (n % 32);
    }
  }
};
constexpr Spread kSpread;

// Interleave 32 pixels of three planes to 96 bytes.
inline void store_pixels(uint8_t* dst, __m256i a, __m256i b, __m256i c) {
  for (int k = 0; k < 3; ++k) {
    const __m256i index = _mm256_load_si256(reinterpret_cast<const __m256i*>(kSpread.pixel[k]));
    __m256i v = _mm256_permutexvar_epi8(index, a);
    v = _mm256_mask_permutexvar_epi8(v, kSpread.plane[1][k], index, b);
    v = _mm256_mask_permutexvar_epi8(v, kSpread.plane[2][k], index, c);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 32 * k), v);
  }
}

inline __m256i add_products(__m256i sums, __m256i a, __m256i b) { return _mm256_dpwssd_epi32(sums, a, b); }
inline __m256i high_words(__m256i lo, __m256i hi) {
  const __m256i order = _mm256_setr_epi16(1, 3, 5, 7, 17, 19, 21, 23, 9, 11, 13, 15, 25, 27, 29, 31);
  return _mm256_permutex2var_epi16(lo, order, hi);
}

#define STOKER_TARGET
#include "jpeg/color_x86.ipp"
#undef STOKER_TARGET

}  // namespace

PixelWriters pixel_writers_vbmi2() { return {ycc_wide<false>, ycc_wide<true>, interleave_wide}; }

void unstuff_vbmi2(const uint8_t*& from, const uint8_t* end, uint8_t*& to) {
  const uint8_t* p = from;
  uint8_t* out = to;
  // The address of the next load depends on no byte: a 0xFF at the end of a vector is a bit for the next one.
  uint64_t carry = 0;
  for (; end - p >= 64; p += 64) {
    const __m512i v = load64(p);
    const uint64_t full = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(-1));
    const uint64_t stuffed = full << 1 | carry;
    if (stuffed & _mm512_test_epi8_mask(v, v)) break;  // a marker, or more than one 0xFF
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(~stuffed, v));
    out += 64 - __builtin_popcountll(stuffed);
    carry = full >> 63;
  }
  from = p - carry;  // the caller looks at a last 0xFF again, with the byte after it
  to = out - carry;
}

void join_pairs_vbmi2(AcTable& table) {
  constexpr int kEntries = 1 << kAcBits, kLanes = 16;
  uint32_t advance[kEntries], values[kEntries];
  for (int i = 0; i < kEntries; ++i) advance[i] = table.advance[i];
  std::memcpy(values, table.values, sizeof values);
  const __m512i low = _mm512_set1_epi32(63), bits = _mm512_set1_epi32(kAcBits);
  const __m512i ended = _mm512_set1_epi32(kEndOfBlock << 6), value = _mm512_set1_epi32(0xFFFFF);
  __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int i = 0; i < kEntries; i += kLanes, index = _mm512_add_epi32(index, _mm512_set1_epi32(kLanes))) {
    const __m512i first = load64(advance + i), length = _mm512_and_si512(first, low);
    const __m512i next =
        _mm512_and_si512(_mm512_maskz_sllv_epi32(0xFFFF, index, length), _mm512_set1_epi32(kEntries - 1));
    const __m512i zero = _mm512_setzero_si512();
    const __m512i second = _mm512_mask_i32gather_epi32(zero, 0xFFFF, next, advance, 4);
    const __m512i length2 = _mm512_and_si512(second, low);
    __mmask16 join = _mm512_cmplt_epi32_mask(first, ended);
    join = _mm512_mask_test_epi32_mask(join, length2, length2);
    join = _mm512_mask_cmple_epi32_mask(join, _mm512_add_epi32(length, length2), bits);
    const __m512i both = _mm512_mask_add_epi32(first, join, first, second);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(table.advance + i), _mm512_maskz_cvtepi32_epi16(0xFFFF, both));
    const __m512i own = load64(values + i), others = _mm512_mask_i32gather_epi32(zero, join, next, values, 4);
    const __m512i joined = _mm512_or_si512(_mm512_and_si512(own, value), _mm512_andnot_si512(value, others));
    _mm512_storeu_si512(table.values + i, _mm512_mask_mov_epi32(own, join, joined));
  }
}

}  // namespace stoker::jpeg

#include "base/target_end.hpp"

#endif
