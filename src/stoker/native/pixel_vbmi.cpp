// SPDX-License-Identifier: Apache-2.0
// Interleaved bytes of three channels to planes and back, with the byte permutations of AVX-512 VBMI: 64 pixels at a time.
#if defined(__x86_64__)
#include <immintrin.h>

#include "pixel_kernels.hpp"

#include "target_begin_vbmi2.hpp"

namespace stoker::pixel {
namespace {

constexpr int kPixels = 64;

// Of three vectors, a permutation takes two; what the third one gives is merged by a mask.
struct Way {
  alignas(64) uint8_t index[3][kPixels];  // into both (bit 6 chooses), or into the third
  uint64_t third[3];
};

// Plane c, byte i: byte 3 i + c of the pixels.
constexpr Way make_deal() {
  Way way{};
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kPixels; ++i) {
      const int at = 3 * i + c;
      way.index[c][i] = static_cast<uint8_t>(at & 127);
      if (at >= 128) way.third[c] |= uint64_t{1} << i;
    }
  return way;
}

// Byte j of the pixels: plane j % 3, byte j / 3.
constexpr Way make_weave() {
  Way way{};
  for (int j = 0; j < 3 * kPixels; ++j) {
    const int plane = j % 3, block = j / kPixels, i = j % kPixels;
    way.index[block][i] = static_cast<uint8_t>(j / 3 + (plane == 1 ? 64 : 0));
    if (plane == 2) way.third[block] |= uint64_t{1} << i;
  }
  return way;
}

constexpr Way kDeal = make_deal(), kWeave = make_weave();

inline __m512i go(const Way& way, int k, const __m512i from[3]) {
  const __m512i index = _mm512_load_si512(way.index[k]);
  const __m512i two = _mm512_permutex2var_epi8(from[0], index, from[1]);
  return _mm512_mask_permutexvar_epi8(two, way.third[k], index, from[2]);
}

// The lowest n bits, of which there are up to 64.
inline __mmask64 first_bits(int n) { return n >= 64 ? ~__mmask64{0} : (n <= 0 ? 0 : (__mmask64{1} << n) - 1); }

void deal_rgb(uint8_t* const* planes, const uint8_t* pixels, int n) {
  __m512i v[3];
  int i = 0;
  for (; i + kPixels <= n; i += kPixels) {
    for (int k = 0; k < 3; ++k) v[k] = _mm512_loadu_si512(pixels + 3 * i + 64 * k);
    for (int c = 0; c < 3; ++c) _mm512_storeu_si512(planes[c] + i, go(kDeal, c, v));
  }
  if (i == n) return;
  for (int k = 0; k < 3; ++k)
    v[k] = _mm512_maskz_loadu_epi8(first_bits(3 * (n - i) - 64 * k), pixels + 3 * i + 64 * k);
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

}  // namespace

void fill_vbmi(Kernels& k) {
  k.deal[1][3] = deal_rgb;
  k.weave[1][3] = weave_rgb;
}

}  // namespace stoker::pixel

#include "target_end.hpp"
#endif
