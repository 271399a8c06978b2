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

}  // namespace

Forms forms_vbmi() { return forms_with_rgb(); }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
