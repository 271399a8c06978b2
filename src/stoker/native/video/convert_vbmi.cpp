// SPDX-License-Identifier: Apache-2.0
// Conversion of video frames for AVX-512 with VBMI and VNNI (Ice Lake, Zen 4 and later): bytes go to their places in the
// pixels by permutations of whole vectors, and products are added by the instruction that multiplies.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shared/half.hpp"
#include "video/convert.hpp"

#include "base/target_begin_vnni.hpp"

namespace stoker::video {
namespace {

#define STOKER_VECTOR_BYTES 64
#include "base/vectors.ipp"

#include "base/vectors_avx512.ipp"

inline V<int32_t> multiply_pairs(V<int16_t> a, V<int32_t> weights) {
  return (V<int32_t>)_mm512_madd_epi16((__m512i)a, (__m512i)weights);
}

inline V<int32_t> add_pairs(V<int32_t> x, V<int16_t> a, V<int32_t> weights) {
  return (V<int32_t>)_mm512_dpwssd_epi32((__m512i)x, (__m512i)a, (__m512i)weights);
}

inline V<uint8_t> pack_words(V<int16_t> a, V<int16_t> b) {
  return (V<uint8_t>)_mm512_packus_epi16((__m512i)a, (__m512i)b);
}

// For each byte of the pixels: its place in the first channel, or 64 more in the second one; its place in the third
// channel, and whether it is one of that channel.
struct Places {
  alignas(64) uint8_t first[3][64], third[3][64];
  uint64_t is_third[3];
};
constexpr Places places_of_bytes() {
  Places places{};
  for (int i = 0; i < 192; ++i) {
    const int pixel = i / 3, channel = i % 3, place = pixel / 16 * 16 + place_of_pixel(pixel % 16);
    places.first[i / 64][i % 64] = static_cast<uint8_t>(channel == 1 ? 64 + place : channel == 0 ? place : 0);
    places.third[i / 64][i % 64] = static_cast<uint8_t>(place);
    if (channel == 2) places.is_third[i / 64] |= uint64_t{1} << (i % 64);
  }
  return places;
}
constexpr Places kPlaces = places_of_bytes();

inline void weave(V<uint8_t> (&channels)[3]) {
  const __m512i a = (__m512i)channels[0], b = (__m512i)channels[1], c = (__m512i)channels[2];
  for (int k = 0; k < 3; ++k) {
    const __m512i two = _mm512_maskz_permutex2var_epi8(~__mmask64{0}, a, _mm512_load_si512(kPlaces.first[k]), b);
    channels[k] =
        (V<uint8_t>)_mm512_mask_permutexvar_epi8(two, kPlaces.is_third[k], _mm512_load_si512(kPlaces.third[k]), c);
  }
}

inline void stream_vector(uint8_t* to, V<uint8_t> x) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)x);
}
inline V<int16_t> words_of_bytes(const uint8_t* p) {
  return (V<int16_t>)_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

#include "video/convert.ipp"
#include "video/rgb.ipp"

// ---- two rows that share their chroma samples ----

// Orders of bytes and words for a block of 64 pixels, which are two parts of 32. Words hold one pixel of each part: in
// the even bytes those of part 0, in the odd ones those of part 1. Lanes of int32 hold one chroma sample, or two pixels.
struct PairPlaces {
  alignas(64) uint8_t luma[64];       // from the pixels of a row
  alignas(64) uint8_t chroma[2][64];  // by part: words of both samples in turn, from 32 of the first and 32 of the last
  alignas(64) uint16_t upper[32];     // upper words of the sums of even pixels, and of those of odd ones, in turn
  // By vector of the result: bytes of two vectors of channels; for the vector in the middle a third one adds its own.
  alignas(64) uint8_t pixels[3][64], middle[64];
  uint64_t is_last;  // in the vector in the middle
};
constexpr PairPlaces places_of_pairs() {
  PairPlaces places{};
  for (int i = 0; i < 64; ++i) places.luma[i] = static_cast<uint8_t>(i / 2 + i % 2 * 32);
  for (int i = 0; i < 16; ++i)
    for (int part = 0; part < 2; ++part) {
      places.chroma[part][4 * i] = static_cast<uint8_t>(16 * part + i);
      places.chroma[part][4 * i + 2] = static_cast<uint8_t>(32 + 16 * part + i);
    }
  for (int i = 0; i < 32; ++i) places.upper[i] = static_cast<uint16_t>(i / 2 * 2 + 1 + i % 2 * 32);
  for (int i = 0; i < 192; ++i) {
    const int pixel = i / 3, channel = i % 3, part = pixel / 32, row = i / 64, at = i % 64;
    // `pack_words` gives eight bytes of one vector and eight of the other one within each 16.
    const int place = pixel % 32 / 8 * 16 + pixel % 8, other = channel == 2 ? part : channel;
    const int own = place + 8 * other;
    if (row == 1 && channel == 2) {
      places.middle[at] = static_cast<uint8_t>(own);
      places.is_last |= uint64_t{1} << at;
    } else {
      places.pixels[row][at] = static_cast<uint8_t>(own + (row == 1 ? 64 * part : channel == 2 ? 64 : 0));
    }
  }
  return places;
}
constexpr PairPlaces kPairPlaces = places_of_pairs();

inline __m512i upper_of(__m512i even, __m512i odd) {
  return _mm512_permutex2var_epi16(even, _mm512_load_si512(kPairPlaces.upper), odd);
}

// Write 64 pixels. `terms`: by channel and part, what the chroma samples and the constant add to luma.
inline void write_block(const uint8_t* luma, const PairWeights& light, const __m512i (&terms)[3][2], uint8_t* to) {
  const __m512i bytes =
      _mm512_maskz_permutexvar_epi8(~__mmask64{0}, _mm512_load_si512(kPairPlaces.luma), _mm512_loadu_si512(luma));
  const Words parts = alternate((V<uint16_t>)bytes);
  __m512i channels[3][2];
  for (int part = 0; part < 2; ++part) {
    const __m512i even = (__m512i)multiply_pairs(parts.of[part], light.of[0]);
    const __m512i odd = (__m512i)multiply_pairs(parts.of[part], light.of[1]);
    for (int c = 0; c < 3; ++c) {
      const __m512i own = terms[c][part];
      channels[c][part] = upper_of(_mm512_add_epi32(own, even), _mm512_add_epi32(own, odd));
    }
  }
  const __m512i first = _mm512_packus_epi16(channels[0][0], channels[1][0]);
  const __m512i second = _mm512_packus_epi16(channels[0][1], channels[1][1]);
  const __m512i last = _mm512_packus_epi16(channels[2][0], channels[2][1]);
  const auto place = [](const uint8_t* places) { return _mm512_load_si512(places); };
  const auto& order = kPairPlaces.pixels;
  const __m512i middle = _mm512_permutex2var_epi8(first, place(order[1]), second);
  stream_vector(to, (V<uint8_t>)_mm512_permutex2var_epi8(first, place(order[0]), last));
  stream_vector(to + 64,
                (V<uint8_t>)_mm512_mask_permutexvar_epi8(middle, kPairPlaces.is_last, place(kPairPlaces.middle), last));
  stream_vector(to + 128, (V<uint8_t>)_mm512_permutex2var_epi8(second, place(order[2]), last));
}

// The sums are those of `rgb_of_row`. Chroma's products, a third of the work, serve both rows; parts of 32 pixels instead
// of even and odd pixels save two of the six permutations of a block; and one instruction takes two upper words.
void rgb_of_pair(const RgbRow<uint8_t>& row, int64_t pitch, const Weights& w, uint8_t* to) {
  const OuterChannel red{row.v, w.red_v, w.green_v}, blue{row.u, w.blue_u, w.green_u};
  const OuterChannel first = row.bgr ? blue : red, last = row.bgr ? red : blue;
  const PairWeights light(w.luma);
  const int32_t base = (1 << (kFractionBits - 1)) - w.luma * w.luma_zero;
  const int32_t sums[3] = {first.weight, first.middle + last.middle, last.weight};
  const V<int32_t> weights[3] = {PairWeights(first.weight).of[0],
                                 PairWeights(first.middle).of[0] | PairWeights(last.middle).of[1],
                                 PairWeights(last.weight).of[1]};
  V<int32_t> rest[3];
  for (int c = 0; c < 3; ++c) rest[c] = repeated((base - sums[c] * w.chroma_zero) * (1 << kScale));
  constexpr __mmask64 kLower = 0x5555555555555555;  // bytes of words
  // The two rows alternate, which the processor's prefetcher does not follow: their successors are prefetched, in the
  // order of memory.
  const auto prefetch = [&](int64_t pixel) {
    const int64_t place = pixel < row.width ? 2 * pitch + pixel : 3 * pitch + pixel - row.width;
    const uintptr_t address = reinterpret_cast<uintptr_t>(row.luma) + static_cast<uintptr_t>(place);
    _mm_prefetch(reinterpret_cast<const char*>(address), _MM_HINT_T0);  // it may be past the frame's end
  };
  for (int64_t x = 0; x < row.width; x += kPairPixels) {
    prefetch(2 * x);
    prefetch(2 * x + kPairPixels);
    const auto half = [&](const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + x / 2)); };
    const __m512i both =
        _mm512_maskz_inserti64x4(0xFF, _mm512_castsi256_si512(half(first.chroma)), half(last.chroma), 1);
    __m512i terms[3][2];
    for (int part = 0; part < 2; ++part) {
      const __m512i order = _mm512_load_si512(kPairPlaces.chroma[part]);
      const auto samples = (V<int16_t>)_mm512_slli_epi16(_mm512_maskz_permutexvar_epi8(kLower, order, both), kScale);
      for (int c = 0; c < 3; ++c) terms[c][part] = (__m512i)add_pairs(rest[c], samples, weights[c]);
    }
    write_block(row.luma + x, light, terms, to + 3 * x);
    write_block(row.luma + pitch + x, light, terms, to + 3 * (row.width + x));
  }
}

Forms forms_with_pairs() {
  Forms forms = forms_with_rgb();
  forms.bytes.rgb_pair = rgb_of_pair;
  return forms;
}

}  // namespace

Forms forms_vbmi() { return forms_with_pairs(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
