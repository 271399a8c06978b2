// SPDX-License-Identifier: Apache-2.0
#include "jpeg/idct.hpp"

#include <algorithm>
#include <cstring>

#include "base/simd.hpp"
#include "jpeg/idct_reduced.hpp"
#include "jpeg/neon.hpp"
#include "shared/jpeg_arithmetic.cuh"
#if defined(__x86_64__)
#include <immintrin.h>
#define STOKER_AVX2 __attribute__((target("avx2")))
#endif

namespace stoker::jpeg {
namespace {

// Zig-zag positions 0..9 are the top left triangle: rows and columns 4 to 7 of such a block are zero.
constexpr int kCornerEnd = 10;

void fill_flat(int16_t* block, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  const uint64_t row = flat_sample(dequantised(block[0], quantiser[0])) * 0x0101010101010101u;
  for (int y = 0; y < 8; ++y, out += pitch) std::memcpy(out, &row, 8);
  block[0] = 0;
}

void transform_plain(int16_t* block, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  int32_t work[64];  // after the column pass
  const bool one_row = std::all_of(block + 8, block + 64, [](int16_t v) { return v == 0; });
  for (int x = 0; x < 8; ++x) {
    int32_t in[8], column[8];
    for (int y = 0; y < 8; ++y) in[y] = dequantised(block[8 * y + x], quantiser[8 * y + x]);
    column8(in, one_row, column);
    for (int y = 0; y < 8; ++y) work[8 * y + x] = column[y];
  }
  for (int y = 0; y < 8; ++y, out += pitch) row8(work + 8 * y, out);
  std::fill_n(block, 64, int16_t{0});
}

void inverse_dct_plain(int16_t* coefficients, const uint8_t* ends, int count, const int16_t* quantiser, uint8_t* out,
                       ptrdiff_t pitch) {
  for (int i = 0; i < count; ++i, coefficients += 64, out += 8) {
    if (ends[i] <= 1) fill_flat(coefficients, quantiser, out, pitch);
    else transform_plain(coefficients, quantiser, out, pitch);
  }
}

#if defined(__x86_64__)

// Two blocks at a time, one per 128-bit lane. pmaddwd computes exact 32-bit sums of products of 16-bit pairs, which
// gives the wrapping rules above.

STOKER_AVX2 inline __m256i pair(int a, int b) {
  return _mm256_set1_epi32(static_cast<int32_t>(static_cast<uint32_t>(a) & 0xFFFF) |
                           static_cast<int32_t>(static_cast<uint32_t>(b) << 16));
}

struct Wide {  // 8 sums per lane
  __m256i lo, hi;
};

STOKER_AVX2 inline Wide interleave(__m256i a, __m256i b) {
  return {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}
STOKER_AVX2 inline Wide dot(Wide x, __m256i k) { return {_mm256_madd_epi16(x.lo, k), _mm256_madd_epi16(x.hi, k)}; }
STOKER_AVX2 inline Wide add(Wide a, Wide b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
STOKER_AVX2 inline Wide sub(Wide a, Wide b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
template <int kShift>
STOKER_AVX2 inline __m256i narrow(Wide v) {
  return _mm256_packs_epi32(_mm256_srai_epi32(v.lo, kShift), _mm256_srai_epi32(v.hi, kShift));
}

// (x + rounding) * 2^13 in one multiplication: in both passes the rounding term is a product of 16-bit numbers.
template <int kShift>
STOKER_AVX2 inline Wide scaled(__m256i x) {
  constexpr int kRounding = 1 << (kShift - 1);
  constexpr int kFactor = kRounding > 8192 ? 8192 : kRounding;
  return dot(interleave(x, _mm256_set1_epi16(kRounding / kFactor)), pair(8192, kFactor));
}

template <int kShift>
STOKER_AVX2 inline void combine(const Wide* even, const Wide* odd, __m256i* x) {
  for (int i = 0; i < 4; ++i) {
    x[i] = narrow<kShift>(add(even[i], odd[i]));
    x[7 - i] = narrow<kShift>(sub(even[i], odd[i]));
  }
}

template <int kShift>
STOKER_AVX2 inline void pass(__m256i* x) {
  const Wide x26 = interleave(x[2], x[6]);
  const Wide t2 = dot(x26, pair(k0541, k0541 - k1847)), t3 = dot(x26, pair(k0541 + k0765, k0541));
  const Wide t0 = scaled<kShift>(_mm256_add_epi16(x[0], x[4])), t1 = scaled<kShift>(_mm256_sub_epi16(x[0], x[4]));
  const Wide even[4] = {add(t0, t3), add(t1, t2), sub(t1, t2), sub(t0, t3)};
  const Wide y34 = interleave(_mm256_add_epi16(x[7], x[3]), _mm256_add_epi16(x[5], x[1]));
  const Wide z3 = dot(y34, pair(k1175 - k1961, k1175)), z4 = dot(y34, pair(k1175, k1175 - k0390));
  const Wide x71 = interleave(x[7], x[1]), x53 = interleave(x[5], x[3]);
  const Wide odd[4] = {add(dot(x71, pair(-k0899, k1501 - k0899)), z4), add(dot(x53, pair(-k2562, k3072 - k2562)), z3),
                       add(dot(x53, pair(k2053 - k2562, -k2562)), z4), add(dot(x71, pair(k0298 - k0899, -k0899)), z3)};
  combine<kShift>(even, odd, x);
}

// The same for inputs with x[4..7] zero.
template <int kShift>
STOKER_AVX2 inline void pass_half(__m256i* x) {
  const Wide t0 = scaled<kShift>(x[0]);
  const Wide x23 = interleave(x[2], _mm256_setzero_si256());
  const Wide t2 = dot(x23, pair(k0541, 0)), t3 = dot(x23, pair(k0541 + k0765, 0));
  const Wide even[4] = {add(t0, t3), add(t0, t2), sub(t0, t2), sub(t0, t3)};
  const Wide x13 = interleave(x[1], x[3]);
  const Wide odd[4] = {dot(x13, pair(k1501 - k0899 + k1175 - k0390, k1175)),
                       dot(x13, pair(k1175, k3072 - k2562 + k1175 - k1961)),
                       dot(x13, pair(k1175 - k0390, k1175 - k2562)), dot(x13, pair(k1175 - k0899, k1175 - k1961))};
  combine<kShift>(even, odd, x);
}

// 8x8 transpose of 16-bit values within each lane.
STOKER_AVX2 inline void transpose(__m256i* x) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(x[i], x[i + 4]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(x[i], x[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = _mm256_unpacklo_epi16(b[i], b[i + 4]);
    x[2 * i + 1] = _mm256_unpackhi_epi16(b[i], b[i + 4]);
  }
}

// Convert columns in x (16-bit, one block per lane) to 8 rows of 16 samples and store them.
STOKER_AVX2 inline void store_columns(const __m256i* x, uint8_t* out, ptrdiff_t pitch) {
  __m256i a[4], b[4], c[4];
  for (int i = 0; i < 4; ++i)
    a[i] = _mm256_add_epi8(_mm256_packs_epi16(x[i], x[i + 4]), _mm256_set1_epi8(static_cast<char>(-128)));
  for (int i = 0; i < 2; ++i) {
    b[2 * i] = _mm256_unpacklo_epi8(a[i], a[i + 2]);
    b[2 * i + 1] = _mm256_unpackhi_epi8(a[i], a[i + 2]);
  }
  // b[0]: columns 0 and 2, b[1]: 4 and 6, b[2]: 1 and 3, b[3]: 5 and 7, alternating by row.
  for (int i = 0; i < 2; ++i) {
    c[2 * i] = _mm256_unpacklo_epi8(b[i], b[i + 2]);
    c[2 * i + 1] = _mm256_unpackhi_epi8(b[i], b[i + 2]);
  }
  // c[0]: columns 0..3 of rows 0..3, c[1]: of rows 4..7, c[2] and c[3]: columns 4..7.
  for (int i = 0; i < 2; ++i) {
    const __m256i rows[2] = {_mm256_unpacklo_epi32(c[i], c[i + 2]), _mm256_unpackhi_epi32(c[i], c[i + 2])};
    for (const __m256i two : rows) {
      const __m256i r = _mm256_permute4x64_epi64(two, _MM_SHUFFLE(3, 1, 2, 0));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(r));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + pitch), _mm256_extracti128_si256(r, 1));
      out += 2 * pitch;
    }
  }
}

// Load and dequantise rows `from`..`from + kRows` of two adjacent blocks and set the source to zero; `ac` collects all
// bits of rows 1 and up.
template <int kRows>
STOKER_AVX2 inline void load_rows(int16_t* block, const int16_t* quantiser, __m256i* x, __m256i& ac) {
  ac = _mm256_setzero_si256();
  for (int y = 0; y < kRows; ++y) {
    __m128i* const a = reinterpret_cast<__m128i*>(block + 8 * y);
    __m128i* const b = reinterpret_cast<__m128i*>(block + 64 + 8 * y);
    const __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128(a)), _mm_load_si128(b), 1);
    _mm_store_si128(a, _mm_setzero_si128());
    _mm_store_si128(b, _mm_setzero_si128());
    if (y) ac = _mm256_or_si256(ac, v);
    const __m128i q = _mm_load_si128(reinterpret_cast<const __m128i*>(quantiser + 8 * y));
    x[y] = _mm256_mullo_epi16(v, _mm256_broadcastsi128_si256(q));
  }
}

// Return all ones in the lanes whose rows 1 to 7 are zero: their column pass must wrap and not saturate.
STOKER_AVX2 inline __m256i one_row_lanes(__m256i ac) {
  const __m256i zero = _mm256_cmpeq_epi64(ac, _mm256_setzero_si256());
  return _mm256_and_si256(zero, _mm256_shuffle_epi32(zero, _MM_SHUFFLE(1, 0, 3, 2)));
}

template <bool kCorner>
STOKER_AVX2 inline void transform_two(int16_t* block, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  __m256i x[8], ac;
  load_rows<kCorner ? 4 : 8>(block, quantiser, x, ac);
  const __m256i one_row = one_row_lanes(ac), wrapped = _mm256_slli_epi16(x[0], 2);
  if constexpr (kCorner) pass_half<kColumnShift>(x);
  else pass<kColumnShift>(x);
  if (!_mm256_testz_si256(one_row, one_row))
    for (int y = 0; y < 8; ++y) x[y] = _mm256_blendv_epi8(x[y], wrapped, one_row);
  transpose(x);
  if constexpr (kCorner) pass_half<kRowShift>(x);
  else pass<kRowShift>(x);
  store_columns(x, out, pitch);
}

STOKER_AVX2 void transform_two_full(int16_t* block, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  transform_two<false>(block, quantiser, out, pitch);
}
STOKER_AVX2 void transform_two_corner(int16_t* block, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  transform_two<true>(block, quantiser, out, pitch);
}

STOKER_AVX2 void inverse_dct_avx2(int16_t* coefficients, const uint8_t* ends, int count, const int16_t* quantiser,
                                  uint8_t* out, ptrdiff_t pitch) {
  int i = 0;
  for (; i + 1 < count; i += 2, coefficients += 128, out += 16) {
    const int end = std::max(ends[i], ends[i + 1]);
    if (end <= 1) {
      fill_flat(coefficients, quantiser, out, pitch);
      fill_flat(coefficients + 64, quantiser, out + 8, pitch);
    } else if (end <= kCornerEnd) {
      transform_two_corner(coefficients, quantiser, out, pitch);
    } else {
      transform_two_full(coefficients, quantiser, out, pitch);
    }
  }
  if (i == count) return;
  alignas(32) int16_t last[128];
  std::memcpy(last, coefficients, 128);
  std::memset(last + 64, 0, 128);
  std::memset(coefficients, 0, 128);
  transform_two_full(last, quantiser, out, pitch);
}
#endif

}  // namespace

InverseDct inverse_dct(int size) {
  if (size < 8) return reduced_dct(size);
#if defined(__x86_64__)
  if (isa() != Isa::Plain) return inverse_dct_avx2;
#elif defined(__aarch64__)
  if (isa() != Isa::Plain) return inverse_dct_neon;
#endif
  return inverse_dct_plain;
}

}  // namespace stoker::jpeg
