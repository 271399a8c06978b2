// SPDX-License-Identifier: Apache-2.0
// The block kernels for AVX-512 (F, BW, VL, DQ).
#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "half.hpp"
#include "pixel_kernels.hpp"

#include "target_begin_avx512.hpp"

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 64

// The zeroing forms, because GCC warns about the undefined source that the plain ones name.
inline __m512 half16(__m256i h) { return _mm512_maskz_cvtph_ps(0xFFFF, h); }
inline __m256i half16(__m512 x) { return _mm512_maskz_cvtps_ph(0xFFFF, x, 0); }

void load_f16(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<float*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  int i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(d + i, half16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + 2 * i))));
  if (i == n) return;
  const __mmask16 rest = static_cast<__mmask16>((1u << (n - i)) - 1);
  const __m256i h = _mm256_maskz_loadu_epi16(rest, s + 2 * i);
  _mm512_mask_storeu_ps(d + i, rest, half16(h));
}

void store_f16(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  int i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(d + 2 * i), half16(_mm512_loadu_ps(s + i)));
  if (i == n) return;
  const __mmask16 rest = static_cast<__mmask16>((1u << (n - i)) - 1);
  _mm256_mask_storeu_epi16(d + 2 * i, rest, half16(_mm512_maskz_loadu_ps(rest, s + i)));
}

#include "pixel_loops.ipp"

inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

template <class Register>
inline void store_lanes(Register* d, __m512i ints) {
  if constexpr (kFloat<Register>) _mm512_storeu_ps(d, _mm512_maskz_cvtepi32_ps(0xFFFF, ints));
  else _mm512_storeu_si512(d, ints);
}

template <class Register>
inline __m512i load_ints(const Register* s) {
  if constexpr (kFloat<Register>) {
    // The maximum's second operand wins over a NaN.
    const __m512 x = _mm512_maskz_max_ps(0xFFFF, _mm512_loadu_ps(s), _mm512_setzero_ps());
    return _mm512_maskz_cvtps_epi32(0xFFFF, _mm512_maskz_min_ps(0xFFFF, x, _mm512_set1_ps(255.0f)));
  } else {
    return _mm512_loadu_si512(s);
  }
}

template <class Register>
void load_bytes(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<Register*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  int i = 0;
  for (; i + 16 <= n; i += 16) store_lanes(d + i, _mm512_maskz_cvtepu8_epi32(0xFFFF, load128(s + i)));
  for (; i < n; ++i) d[i] = s[i];
}

template <class Register>
void store_bytes(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const Register*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  int i = 0;
  for (; i + 16 <= n; i += 16)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i), _mm512_maskz_cvtepi32_epi8(0xFFFF, load_ints(s + i)));
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
  __m512i spread[3];
  const __m512i at = Back ? _mm512_setr_epi32(13, 10, 7, 4, 9, 6, 3, 0, 9, 6, 3, 0, 9, 6, 3, 0)
                          : _mm512_setr_epi32(0, 3, 6, 9, 0, 3, 6, 9, 0, 3, 6, 9, 4, 7, 10, 13);
  for (int c = 0; c < 3; ++c) {
    d[c] = reinterpret_cast<Register*>(reg[c]);
    spread[c] = _mm512_or_si512(_mm512_add_epi32(at, _mm512_set1_epi32(c)), _mm512_set1_epi32(int(0x80808000)));
  }
  constexpr int kPart[4] = {Back ? 32 : 0, Back ? 24 : 12, Back ? 12 : 24, Back ? 0 : 32};
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const uint8_t* q = p + 3 * (Back ? n - i - 16 : i);
    __m512i bytes = _mm512_zextsi128_si512(load128(q + kPart[0]));
    bytes = _mm512_mask_broadcast_i32x4(bytes, 0x00F0, load128(q + kPart[1]));
    bytes = _mm512_mask_broadcast_i32x4(bytes, 0x0F00, load128(q + kPart[2]));
    bytes = _mm512_mask_broadcast_i32x4(bytes, 0xF000, load128(q + kPart[3]));
    for (int c = 0; c < 3; ++c) store_lanes(d[c] + i, _mm512_shuffle_epi8(bytes, spread[c]));
  }
  for (; i < n; ++i)
    for (int c = 0; c < 3; ++c) d[c][i] = p[3 * (Back ? n - 1 - i : i) + c];
}

template <class Register>
void store_rgb(uint8_t* p, const uint8_t* const* reg, int n) {
  const Register* s[3];
  for (int c = 0; c < 3; ++c) s[c] = reinterpret_cast<const Register*>(reg[c]);
  const __m512i close = _mm512_maskz_broadcast_i32x4(
      0xFFFF, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const __m512i join = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15);
  const __m512i low = _mm512_set1_epi32(255);
  int i = 0;
  for (; i + 16 <= n; i += 16, p += 48) {
    const __m512i r = _mm512_and_si512(load_ints(s[0] + i), low), g = _mm512_and_si512(load_ints(s[1] + i), low);
    const __m512i high = _mm512_maskz_slli_epi32(0xFFFF, load_ints(s[2] + i), 16);
    const __m512i rgb = _mm512_or_si512(_mm512_or_si512(r, _mm512_maskz_slli_epi32(0xFFFF, g, 8)), high);
    const __m512i bytes = _mm512_maskz_permutexvar_epi32(0xFFFF, join, _mm512_shuffle_epi8(rgb, close));
    _mm512_mask_storeu_epi32(p, 0x0FFF, bytes);
  }
  if (i == n) return;
  const uint8_t* rest[3] = {};
  for (int c = 0; c < 3; ++c) rest[c] = reinterpret_cast<const uint8_t*>(s[c] + i);
  store_group<3, Register>(p, rest, n - i);
}

// A table of 256 bytes as 128 words in four vectors: a two-vector permutation finds the word among 64, the top bit
// of the byte chooses the half, its lowest bit the byte of the word. Even and odd bytes go through apart.
void lookup_bytes(void* dst, const uint8_t* src, const void* table, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* t = static_cast<const uint8_t*>(table);
  const __m512i t0 = _mm512_loadu_si512(t), t1 = _mm512_loadu_si512(t + 64);
  const __m512i t2 = _mm512_loadu_si512(t + 128), t3 = _mm512_loadu_si512(t + 192);
  const __m512i one = _mm512_set1_epi16(1), top = _mm512_set1_epi16(0x80), byte = _mm512_set1_epi16(0xFF);
  const auto find = [&](__m512i v) {  // words of 0..255 in, words whose low byte is the result out
    const __m512i index = _mm512_srli_epi16(v, 1);
    const __m512i low = _mm512_permutex2var_epi16(t0, index, t1), high = _mm512_permutex2var_epi16(t2, index, t3);
    const __m512i word = _mm512_mask_blend_epi16(_mm512_test_epi16_mask(v, top), low, high);
    return _mm512_srlv_epi16(word, _mm512_slli_epi16(_mm512_and_si512(v, one), 3));
  };
  int i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m512i v = _mm512_loadu_si512(src + i);
    const __m512i even = find(_mm512_and_si512(v, byte)), odd = find(_mm512_srli_epi16(v, 8));
    _mm512_storeu_si512(d + i, _mm512_or_si512(_mm512_and_si512(even, byte), _mm512_slli_epi16(odd, 8)));
  }
  for (; i < n; ++i) d[i] = t[src[i]];
}

// A table of 256 words of 32 bits in sixteen vectors, 32 words to a two-vector permutation: eight of them, of which the
// upper three bits of the byte choose one. No gather: those are slow since they were made safe.
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
  k.lookup[1] = lookup_bytes;
  k.lookup[4] = lookup_words<false>;
  k.lookup_past[4] = lookup_words<true>;
  k.store_alignment = 64;  // every vector that is not aligned straddles two cache lines
}

}  // namespace stoker::pixel

#include "target_end.hpp"
#endif
