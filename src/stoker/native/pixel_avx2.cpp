// SPDX-License-Identifier: Apache-2.0
// The block kernels for AVX2 with F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "half.hpp"
#include "pixel_kernels.hpp"

// After the includes, so that no inline function of the standard library is compiled for a larger machine than the
// one that other files expect it on.
#include "target_begin_avx2.hpp"

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 32

void load_f16(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<float*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  int i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s + 2 * i))));
  for (; i < n; ++i) {
    uint16_t h;
    std::memcpy(&h, s + 2 * i, sizeof h);
    d[i] = float_from_half(h);
  }
}

void store_f16(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  int i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(d + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(s + i), 0));
  for (; i < n; ++i) {
    const uint16_t h = half_from_float(s[i]);
    std::memcpy(d + 2 * i, &h, sizeof h);
  }
}

#include "pixel_loops.ipp"

inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

template <class Register>
inline void store_lanes(Register* d, __m256i ints) {
  if constexpr (kFloat<Register>) _mm256_storeu_ps(d, _mm256_cvtepi32_ps(ints));
  else _mm256_storeu_si256(reinterpret_cast<__m256i*>(d), ints);
}

template <class Register>
inline __m256i load_ints(const Register* s) {
  if constexpr (kFloat<Register>) {
    // The maximum's second operand wins over a NaN.
    const __m256 x = _mm256_max_ps(_mm256_loadu_ps(s), _mm256_setzero_ps());
    return _mm256_cvtps_epi32(_mm256_min_ps(x, _mm256_set1_ps(255.0f)));
  } else {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s));
  }
}

template <class Register>
void load_bytes(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<Register*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  int i = 0;
  for (; i + 8 <= n; i += 8)
    store_lanes(d + i, _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(s + i))));
  for (; i < n; ++i) d[i] = s[i];
}

template <class Register>
void store_bytes(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const Register*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  // Only the low byte of an integer counts (U8, I8 and Bool alike), so it is cut out before the saturating packs.
  const __m256i low = _mm256_set1_epi32(255), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const auto pick = [&](int i) { return _mm256_and_si256(load_ints(s + i), low); };
  int i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i a = _mm256_packus_epi32(pick(i), pick(i + 8)), b = _mm256_packus_epi32(pick(i + 16), pick(i + 24));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i), bytes);
  }
  if (i == n) return;
  if constexpr (kFloat<Register>) store_cast<uint8_t>(d + i, s + i, n - i);
  else store_as<uint8_t, int32_t>(d + i, s + i, n - i);
}

// Three channels: 16 bytes hold four pixels with four bytes to spare; a byte shuffle spreads one channel of them over
// four 32-bit lanes. The last 16 bytes of a group are read four bytes early, so as not to read beyond the pixels.
// Back: the last pixel first, which costs nothing but other shuffles.
template <class Register, bool Back>
void load_rgb(uint8_t* const* reg, const uint8_t* p, int n) {
  Register* d[3];
  __m256i spread[3];
  const __m256i at = Back ? _mm256_setr_epi32(13, 10, 7, 4, 9, 6, 3, 0) : _mm256_setr_epi32(0, 3, 6, 9, 4, 7, 10, 13);
  for (int c = 0; c < 3; ++c) {
    d[c] = reinterpret_cast<Register*>(reg[c]);
    spread[c] = _mm256_or_si256(_mm256_add_epi32(at, _mm256_set1_epi32(c)), _mm256_set1_epi32(int(0x80808000)));
  }
  constexpr int kFirst = Back ? 8 : 0;
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const uint8_t* q = p + 3 * (Back ? n - i - 8 : i);
    const __m256i first = _mm256_castsi128_si256(load128(q + kFirst));
    const __m256i bytes = _mm256_inserti128_si256(first, load128(q + 8 - kFirst), 1);
    for (int c = 0; c < 3; ++c) store_lanes(d[c] + i, _mm256_shuffle_epi8(bytes, spread[c]));
  }
  for (; i < n; ++i)
    for (int c = 0; c < 3; ++c) d[c][i] = p[3 * (Back ? n - 1 - i : i) + c];
}

template <class Register>
void store_rgb(uint8_t* p, const uint8_t* const* reg, int n) {
  const Register* s[3];
  for (int c = 0; c < 3; ++c) s[c] = reinterpret_cast<const Register*>(reg[c]);
  const __m256i close = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8, 9,
                                         10, 12, 13, 14, -1, -1, -1, -1);
  const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7), low = _mm256_set1_epi32(255);
  int i = 0;
  for (; i + 8 <= n; i += 8, p += 24) {
    const __m256i r = _mm256_and_si256(load_ints(s[0] + i), low), g = _mm256_and_si256(load_ints(s[1] + i), low);
    const __m256i b = load_ints(s[2] + i);
    const __m256i rgb = _mm256_or_si256(_mm256_or_si256(r, _mm256_slli_epi32(g, 8)), _mm256_slli_epi32(b, 16));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(rgb, close), join);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(bytes));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p + 16), _mm256_extracti128_si256(bytes, 1));
  }
  if (i == n) return;
  const uint8_t* rest[3] = {};
  for (int c = 0; c < 3; ++c) rest[c] = reinterpret_cast<const uint8_t*>(s[c] + i);
  store_group<3, Register>(p, rest, n - i);
}

template <int Size>
void reverse(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* s = static_cast<const uint8_t*>(src) + static_cast<ptrdiff_t>(n) * Size;
  alignas(32) int8_t order[32];  // within 16 bytes
  for (int i = 0; i < 32; ++i) order[i] = static_cast<int8_t>((15 - i % 16) / Size * Size + i % Size);
  const __m256i within = _mm256_load_si256(reinterpret_cast<const __m256i*>(order));
  constexpr int step = 32 / Size;
  int i = 0;
  for (; i + step <= n; i += step, d += 32) {
    s -= 32;
    const __m256i x = _mm256_shuffle_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(s)), within);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d), _mm256_permute4x64_epi64(x, 0x4E));
  }
  for (; i < n; ++i, d += Size) {
    s -= Size;
    std::memcpy(d, s, Size);
  }
}

// A table of 256 bytes as 16 shuffles of 16. A shuffle yields 0 where the index is negative, and else looks at its
// low four bits only; so with v - 16 h as the index, row h takes part for all v >= 16 h. Rows hold the exclusive or
// with the row before: those that take part telescope to the one that is meant. Bytes above 127 have a sign of their
// own and go through a second half.
void lookup_bytes(void* dst, const uint8_t* src, const void* table, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* t = static_cast<const uint8_t*>(table);
  __m256i row[16];
  for (int h = 0; h < 16; ++h) {
    __m128i x = load128(t + 16 * h);
    if (h % 8) x = _mm_xor_si128(x, load128(t + 16 * (h - 1)));
    row[h] = _mm256_broadcastsi128_si256(x);
  }
  const __m256i sixteen = _mm256_set1_epi8(16), top = _mm256_set1_epi8(-128);
  int i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i));
    __m256i a = v, b = _mm256_xor_si256(v, top);
    __m256i low = _mm256_shuffle_epi8(row[0], a), high = _mm256_shuffle_epi8(row[8], b);
    for (int h = 1; h < 8; ++h) {
      a = _mm256_sub_epi8(a, sixteen);
      b = _mm256_sub_epi8(b, sixteen);
      low = _mm256_xor_si256(low, _mm256_shuffle_epi8(row[h], a));
      high = _mm256_xor_si256(high, _mm256_shuffle_epi8(row[8 + h], b));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + i), _mm256_blendv_epi8(low, high, v));
  }
  for (; i < n; ++i) d[i] = t[src[i]];
}

}  // namespace

void fill_avx2(Kernels& k) {
  fill_loops(k);
  const int i32 = at(Type::I32), f32 = at(Type::F32);
  for (const DType d : {DType::U8, DType::Bool}) {
    k.load[at(d)][i32] = load_bytes<int32_t>;
    k.load[at(d)][f32] = load_bytes<float>;
  }
  for (const DType d : {DType::U8, DType::I8, DType::Bool}) k.store[at(d)][i32] = store_bytes<int32_t>;
  k.store[at(DType::U8)][f32] = store_bytes<float>;
  k.load_group[3][i32] = load_rgb<int32_t, false>;
  k.load_group[3][f32] = load_rgb<float, false>;
  k.load_group_back[3][i32] = load_rgb<int32_t, true>;
  k.load_group_back[3][f32] = load_rgb<float, true>;
  k.store_group[3][i32] = store_rgb<int32_t>;
  k.store_group[3][f32] = store_rgb<float>;
  k.reverse[1] = reverse<1>;
  k.reverse[2] = reverse<2>;
  k.reverse[4] = reverse<4>;
  k.reverse[8] = reverse<8>;
  k.lookup[1] = lookup_bytes;
}

}  // namespace stoker::pixel

#include "target_end.hpp"
#endif
