// SPDX-License-Identifier: Apache-2.0
// Interleaved bytes of three channels to planes and back, mixes of them, and lookups of bytes and words, with the byte
// permutations of AVX-512 VBMI: 64 pixels at a time.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

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

// Where pack_sums() puts the sums of pixel i.
constexpr int packed_place(int i) { return 16 * (i % 16 / 4) + 4 * (i / 16) + i % 4; }

// The same as make_weave(), for planes in the order of pack_sums().
constexpr Permutation make_mixed_weave() {
  Permutation way{};
  for (int j = 0; j < 3 * kPixels; ++j) {
    const int plane = j % 3, block = j / kPixels, i = j % kPixels;
    way.index[block][i] = static_cast<uint8_t>(packed_place(j / 3) + (plane == 1 ? 64 : 0));
    if (plane == 2) way.third[block] |= uint64_t{1} << i;
  }
  return way;
}

constexpr Permutation kDeal = make_deal(), kWeave = make_weave(), kMixedWeave = make_mixed_weave();

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

inline __m512i pack_sums(const __m512i (&sums)[4]) {
  return _mm512_packus_epi16(_mm512_packs_epi32(sums[0], sums[1]), _mm512_packs_epi32(sums[2], sums[3]));
}

// The loads of 64 pixels end this many bytes after them.
constexpr int kMixBeyond = 16;

// pixel/mixes.ipp with 16 neighbouring pixels in a vector: one load, and a permutation for each channel.
template <int kCount, bool kBefore, bool kAfter, bool kFloors>
void mix_rgb(uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes, int n) {
  alignas(64) uint8_t place[64];
  __m512i spread[kMixed];
  __m512 weight[kCount][kMixed], before[kCount], after[kCount];
  for (int k = 0; k < kMixed; ++k) {
    for (int i = 0; i < 64; ++i) place[i] = static_cast<uint8_t>(i / 4 * kMixed + channels[k]);
    spread[k] = _mm512_load_si512(place);
  }
  for (int i = 0; i < kPixels; ++i) place[i] = static_cast<uint8_t>(packed_place(i));
  const __m512i in_order = _mm512_load_si512(place);
  for (int c = 0; c < kCount; ++c) {
    for (int k = 0; k < kMixed; ++k) weight[c][k] = _mm512_set1_ps(mixes[c].weight[k]);
    before[c] = _mm512_set1_ps(mixes[c].before);
    after[c] = _mm512_set1_ps(mixes[c].after);
  }
  const auto step = [&](uint8_t* out, const uint8_t* in) {
    constexpr __mmask64 kFirstBytes = 0x1111111111111111;
    __m512i sums[kCount][4], plane[kCount];
    for (int v = 0; v < 4; ++v) {
      const __m512i bytes = _mm512_loadu_si512(in + 48 * v);
      __m512 x[kMixed];
      for (int k = 0; k < kMixed; ++k)
        x[k] = _mm512_maskz_cvtepi32_ps(0xFFFF, _mm512_maskz_permutexvar_epi8(kFirstBytes, spread[k], bytes));
      for (int c = 0; c < kCount; ++c) {
        __m512 sum = _mm512_mul_ps(x[0], weight[c][0]);
        if constexpr (kBefore) sum = _mm512_add_ps(sum, before[c]);
        sum = _mm512_add_ps(sum, _mm512_mul_ps(x[1], weight[c][1]));
        sum = _mm512_add_ps(sum, _mm512_mul_ps(x[2], weight[c][2]));
        if constexpr (kAfter) sum = _mm512_add_ps(sum, after[c]);
        sums[c][v] = kFloors ? _mm512_maskz_cvttps_epi32(0xFFFF, sum) : _mm512_maskz_cvtps_epi32(0xFFFF, sum);
      }
    }
    for (int c = 0; c < kCount; ++c) plane[c] = pack_sums(sums[c]);
    if constexpr (kCount == 1) {
      _mm512_storeu_si512(out, _mm512_maskz_permutexvar_epi8(~__mmask64{0}, in_order, plane[0]));
    } else {
      for (int k = 0; k < 3; ++k) _mm512_storeu_si512(out + 64 * k, go(kMixedWeave, k, plane));
    }
  };
  int i = 0;
  for (; kMixed * (n - i) >= kMixed * kPixels + kMixBeyond; i += kPixels) step(to + kCount * i, pixels + kMixed * i);
  for (; i < n; i += kPixels) {
    const auto left = static_cast<size_t>(n - i < kPixels ? n - i : kPixels);
    uint8_t in[kMixed * kPixels + kMixBeyond] = {}, out[kCount * kPixels];
    std::memcpy(in, pixels + kMixed * i, kMixed * left);
    step(out, in);
    std::memcpy(to + kCount * i, out, kCount * left);
  }
}

template <int kCount, bool kFloors>
void mix_with(bool before, bool after, uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes,
              int n) {
  if (before && after) return mix_rgb<kCount, true, true, kFloors>(to, pixels, channels, mixes, n);
  if (before) return mix_rgb<kCount, true, false, kFloors>(to, pixels, channels, mixes, n);
  if (after) return mix_rgb<kCount, false, true, kFloors>(to, pixels, channels, mixes, n);
  mix_rgb<kCount, false, false, kFloors>(to, pixels, channels, mixes, n);
}

void mix_pixels(uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes, int count, int n) {
  bool before = false, after = false;
  for (int c = 0; c < count; ++c) before |= mixes[c].before != 0, after |= mixes[c].after != 0;
  if (count == kMixed) mix_with<kMixed, false>(before, after, to, pixels, channels, mixes, n);
  else if (mixes[0].floors) mix_with<1, true>(before, after, to, pixels, channels, mixes, n);
  else mix_with<1, false>(before, after, to, pixels, channels, mixes, n);
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

// Indices of two bytes of each of 32 words in two vectors, the first ones in the lower half.
struct Split {
  alignas(64) uint8_t index[2][64];
  constexpr Split() : index() {
    for (int pair = 0; pair < 2; ++pair)
      for (int i = 0; i < 64; ++i) index[pair][i] = static_cast<uint8_t>(4 * (i % 32) + 2 * pair + i / 32);
  }
};
constexpr Split kSplit;

// A table of 256 words of 32 bits as four tables of bytes: a quarter of the permutations that whole words need.
class WordTable {
 public:
  explicit WordTable(const uint8_t* words) {
    for (int part = 0; part < 4; ++part) {
      const auto load = [&](int k) { return _mm512_loadu_si512(words + 256 * part + 64 * k); };
      const __m512i a = load(0), b = load(1), c = load(2), d = load(3);
      for (int byte = 0; byte < 4; byte += 2) {
        const __m512i index = _mm512_load_si512(kSplit.index[byte / 2]);
        const __m512i ab = _mm512_permutex2var_epi8(a, index, b), cd = _mm512_permutex2var_epi8(c, index, d);
        bytes_[byte][part] = _mm512_maskz_shuffle_i64x2(0xFF, ab, cd, 0x44);
        bytes_[byte + 1][part] = _mm512_maskz_shuffle_i64x2(0xFF, ab, cd, 0xEE);
      }
    }
  }

  // Look up 64 bytes; the words of the bytes 16 k to 16 k + 15 are in found[k].
  void look_up(__m512i at, __m512i (&found)[4]) const {
    // Unpacking works within lanes of 128 bits, so lane i gets the bytes 4 i to 4 i + 3 of each sixteen.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    at = _mm512_maskz_permutexvar_epi32(0xFFFF, order, at);
    const __mmask64 upper = _mm512_movepi8_mask(at);
    __m512i byte[4];
    for (int b = 0; b < 4; ++b)
      byte[b] = _mm512_mask_blend_epi8(upper, _mm512_permutex2var_epi8(bytes_[b][0], at, bytes_[b][1]),
                                       _mm512_permutex2var_epi8(bytes_[b][2], at, bytes_[b][3]));
    const __m512i low01 = _mm512_unpacklo_epi8(byte[0], byte[1]), high01 = _mm512_unpackhi_epi8(byte[0], byte[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(byte[2], byte[3]), high23 = _mm512_unpackhi_epi8(byte[2], byte[3]);
    found[0] = _mm512_unpacklo_epi16(low01, low23);
    found[1] = _mm512_unpackhi_epi16(low01, low23);
    found[2] = _mm512_unpacklo_epi16(high01, high23);
    found[3] = _mm512_unpackhi_epi16(high01, high23);
  }

 private:
  __m512i bytes_[4][4];  // [byte of the word][quarter of the table]
};

// `Past`: with non-temporal stores where the destination allows them.
template <bool Past>
void lookup_words(void* dst, const uint8_t* src, const void* table, int n) {
  if (Past && reinterpret_cast<uintptr_t>(dst) % 64) return lookup_words<false>(dst, src, table, n);
  auto* d = static_cast<uint8_t*>(dst);
  const WordTable words(static_cast<const uint8_t*>(table));
  for (int i = 0; i < n; i += 64) {
    const int rest = n - i;
    __m512i found[4];
    words.look_up(rest >= 64 ? _mm512_loadu_si512(src + i) : _mm512_maskz_loadu_epi8(first_bits(rest), src + i), found);
    for (int k = 0; k < 4 && 16 * k < rest; ++k) {
      uint8_t* const to = d + 4 * i + 64 * k;
      if (rest < 16 * (k + 1)) _mm512_mask_storeu_epi8(to, first_bits(4 * (rest - 16 * k)), found[k]);
      else if constexpr (Past) _mm512_stream_si512(reinterpret_cast<__m512i*>(to), found[k]);
      else _mm512_storeu_si512(to, found[k]);
    }
  }
}

}  // namespace

void fill_vbmi(Kernels& k) {
  k.reverse[3] = reverse_pixels<3>;
  k.reverse[6] = reverse_pixels<6>;
  k.reverse[12] = reverse_pixels<12>;
  k.deal[1][3] = deal_rgb;
  k.weave[1][3] = weave_rgb;
  k.lookup[1] = lookup_bytes;
  k.lookup[4] = lookup_words<false>;
  k.lookup_past[4] = lookup_words<true>;
  k.mix_pixels = mix_pixels;
}

}  // namespace stoker::pixel

#include "base/target_end.hpp"
#endif
