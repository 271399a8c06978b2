// SPDX-License-Identifier: Apache-2.0
// Interleaved bytes of three channels to planes and back, and lookups of bytes, with the byte permutations of AVX-512
// VBMI: 64 pixels at a time.
#if defined(__x86_64__)
#include <immintrin.h>

#include "pixel/kernels.hpp"

#include "base/target_begin_vbmi2.hpp"

namespace stoker::pixel {
namespace {

constexpr int kPixels = 64;

// Permutation of three vectors. The instruction takes two vectors; bytes from the third are merged with a mask.
struct Permutation {
  alignas(64) uint8_t index[3][kPixels];  // indices into the first two (bit 6 selects), or into the third
  uint64_t third[3];
};

// Plane c, byte i: byte 3 i + c of the pixels.
constexpr Permutation make_deal() {
  Permutation way{};
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kPixels; ++i) {
      const int at = 3 * i + c;
      way.index[c][i] = static_cast<uint8_t>(at & 127);
      if (at >= 128) way.third[c] |= uint64_t{1} << i;
    }
  return way;
}

// Byte j of the pixels: plane j % 3, byte j / 3.
constexpr Permutation make_weave() {
  Permutation way{};
  for (int j = 0; j < 3 * kPixels; ++j) {
    const int plane = j % 3, block = j / kPixels, i = j % kPixels;
    way.index[block][i] = static_cast<uint8_t>(j / 3 + (plane == 1 ? 64 : 0));
    if (plane == 2) way.third[block] |= uint64_t{1} << i;
  }
  return way;
}

constexpr Permutation kDeal = make_deal(), kWeave = make_weave();

inline __m512i go(const Permutation& way, int k, const __m512i from[3]) {
  const __m512i index = _mm512_load_si512(way.index[k]);
  const __m512i two = _mm512_permutex2var_epi8(from[0], index, from[1]);
  return _mm512_mask_permutexvar_epi8(two, way.third[k], index, from[2]);
}

// Mask of the lowest n bits, at most 64.
inline __mmask64 first_bits(int n) { return n >= 64 ? ~__mmask64{0} : (n <= 0 ? 0 : (__mmask64{1} << n) - 1); }

void deal_rgb(uint8_t* const* planes, const uint8_t* pixels, int n) {
  __m512i v[3];
  int i = 0;
  for (; i + kPixels <= n; i += kPixels) {
    for (int k = 0; k < 3; ++k) v[k] = _mm512_loadu_si512(pixels + 3 * i + 64 * k);
    for (int c = 0; c < 3; ++c) _mm512_storeu_si512(planes[c] + i, go(kDeal, c, v));
  }
  if (i == n) return;
  for (int k = 0; k < 3; ++k) v[k] = _mm512_maskz_loadu_epi8(first_bits(3 * (n - i) - 64 * k), pixels + 3 * i + 64 * k);
  for (int c = 0; c < 3; ++c) _mm512_mask_storeu_epi8(planes[c] + i, first_bits(n - i), go(kDeal, c, v));
}

void weave_rgb(uint8_t* pixels, const uint8_t* const* planes, int n) {
  __m512i v[3];
  int i = 0;
  for (; i + kPixels <= n; i += kPixels) {
    for (int c = 0; c < 3; ++c) v[c] = _mm512_loadu_si512(planes[c] + i);
    for (int k = 0; k < 3; ++k) _mm512_storeu_si512(pixels + 3 * i + 64 * k, go(kWeave, k, v));
  }
  if (i == n) return;
  for (int c = 0; c < 3; ++c) v[c] = _mm512_maskz_loadu_epi8(first_bits(n - i), planes[c] + i);
  for (int k = 0; k < 3; ++k)
    _mm512_mask_storeu_epi8(pixels + 3 * i + 64 * k, first_bits(3 * (n - i) - 64 * k), go(kWeave, k, v));
}

// As many whole pixels of Size bytes as fit into a vector, the last one first.
template <int Size>
void reverse_pixels(void* dst, const void* src, int n) {
  constexpr int kPixelsPerVector = 64 / Size, kBytes = kPixelsPerVector * Size;
  alignas(64) uint8_t order[64] = {};
  for (int i = 0; i < kBytes; ++i) order[i] = static_cast<uint8_t>(kBytes - Size - i / Size * Size + i % Size);
  const __m512i index = _mm512_load_si512(order);
  auto* d = static_cast<uint8_t*>(dst);
  const auto* s = static_cast<const uint8_t*>(src) + static_cast<ptrdiff_t>(n) * Size;
  const __mmask64 whole = first_bits(kBytes);
  int i = 0;
  for (; i + kPixelsPerVector <= n; i += kPixelsPerVector, d += kBytes) {
    s -= kBytes;
    _mm512_mask_storeu_epi8(d, whole, _mm512_maskz_permutexvar_epi8(whole, index, _mm512_maskz_loadu_epi8(whole, s)));
  }
  // The rest stands at the start of a vector, and mirrored at its end.
  const int rest = (n - i) * Size;
  if (rest == 0) return;
  const __m512i mirrored =
      _mm512_maskz_permutexvar_epi8(whole, index, _mm512_maskz_loadu_epi8(first_bits(rest), s - rest));
  const int ahead = kBytes - rest;
  _mm512_mask_storeu_epi8(d - ahead, whole & ~first_bits(ahead), mirrored);
}

// Look up bytes in a table of four vectors. An instruction looks up in two of them with the lower seven bits.
void lookup_bytes(void* dst, const uint8_t* src, const void* table, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  __m512i t[4];
  for (int k = 0; k < 4; ++k) t[k] = _mm512_loadu_si512(static_cast<const uint8_t*>(table) + 64 * k);
  const auto found = [&](__m512i at) {
    const __m512i low = _mm512_permutex2var_epi8(t[0], at, t[1]), high = _mm512_permutex2var_epi8(t[2], at, t[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high);
  };
  int i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(d + i, found(_mm512_loadu_si512(src + i)));
  if (i == n) return;
  const __mmask64 rest = first_bits(n - i);
  _mm512_mask_storeu_epi8(d + i, rest, found(_mm512_maskz_loadu_epi8(rest, src + i)));
}

}  // namespace

void fill_vbmi(Kernels& k) {
  k.reverse[3] = reverse_pixels<3>;
  k.reverse[6] = reverse_pixels<6>;
  k.reverse[12] = reverse_pixels<12>;
  k.deal[1][3] = deal_rgb;
  k.weave[1][3] = weave_rgb;
  k.lookup[1] = lookup_bytes;
}

}  // namespace stoker::pixel

#include "base/target_end.hpp"
#endif
