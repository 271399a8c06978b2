// SPDX-License-Identifier: Apache-2.0
// Colour conversion of 32 pixels at a time, in vectors of 256 bits. Included inside a namespace, once per instruction
// set, with STOKER_TARGET (an attribute, or nothing), load32, store_pixels and two functions: `add_products` adds the
// products of pairs of 16-bit numbers to 32-bit sums, and `high_words` returns the upper halves of the sums of pairs
// that unpacking separated, in order. All of it is exact, so that every instruction set computes the same results.

struct Rgb16 {  // 16 pixels, 16 bits, not clamped yet
  __m256i r, g, b;
};

// kCrToR and kCbToB do not fit into 16 bits: whole multiples of the input are split off. The rest is half the factor in
// a product that is rounded after 15 bits. For one of the two this half is itself rounded; the results for all inputs,
// -128 to 127, are the same (tests/native/jpeg_kernels_check.cpp).
STOKER_TARGET inline __m256i rounded_product(__m256i v, int factor) {
  return _mm256_mulhrs_epi16(v, _mm256_set1_epi16(static_cast<int16_t>((factor + 1) >> 1)));
}

STOKER_TARGET inline Rgb16 convert16(__m256i y, __m256i cb, __m256i cr) {
  const __m256i r = _mm256_add_epi16(_mm256_add_epi16(y, cr), rounded_product(cr, kCrToR - 65536));
  const __m256i cb2 = _mm256_add_epi16(cb, cb);
  const __m256i b = _mm256_add_epi16(_mm256_add_epi16(y, cb2), rounded_product(cb, kCbToB - 131072));
  const __m256i k = _mm256_set1_epi32((kCbToG & 0xFFFF) | (kCrToG + 65536) << 16);
  const __m256i half = _mm256_set1_epi32(kHalf);
  const __m256i lo = add_products(half, _mm256_unpacklo_epi16(cb, cr), k);
  const __m256i hi = add_products(half, _mm256_unpackhi_epi16(cb, cr), k);
  const __m256i g = high_words(lo, hi);
  return {r, _mm256_add_epi16(y, _mm256_sub_epi16(g, cr)), b};
}

template <bool kBgr>
STOKER_TARGET inline void convert32(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst) {
  const __m256i zero = _mm256_setzero_si256(), centre = _mm256_set1_epi16(128);
  const __m256i vy = load32(y), vb = load32(cb), vr = load32(cr);
  const Rgb16 lo = convert16(_mm256_unpacklo_epi8(vy, zero), _mm256_sub_epi16(_mm256_unpacklo_epi8(vb, zero), centre),
                             _mm256_sub_epi16(_mm256_unpacklo_epi8(vr, zero), centre));
  const Rgb16 hi = convert16(_mm256_unpackhi_epi8(vy, zero), _mm256_sub_epi16(_mm256_unpackhi_epi8(vb, zero), centre),
                             _mm256_sub_epi16(_mm256_unpackhi_epi8(vr, zero), centre));
  const __m256i r = _mm256_packus_epi16(lo.r, hi.r), g = _mm256_packus_epi16(lo.g, hi.g);
  const __m256i b = _mm256_packus_epi16(lo.b, hi.b);
  store_pixels(dst, kBgr ? b : r, g, kBgr ? r : b);
}

template <bool kBgr>
STOKER_TARGET void ycc_wide(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n) {
  int i = 0;
  for (; i + 32 <= n; i += 32) convert32<kBgr>(y + i, cb + i, cr + i, dst + 3 * i);
  if (i == n) return;
  uint8_t last[96];
  convert32<kBgr>(y + i, cb + i, cr + i, last);
  std::memcpy(dst + 3 * i, last, 3 * static_cast<size_t>(n - i));
}

STOKER_TARGET void interleave_wide(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst, int n) {
  int i = 0;
  for (; i + 32 <= n; i += 32) store_pixels(dst + 3 * i, load32(a + i), load32(b + i), load32(c + i));
  if (i == n) return;
  uint8_t last[96];
  store_pixels(last, load32(a + i), load32(b + i), load32(c + i));
  std::memcpy(dst + 3 * i, last, 3 * static_cast<size_t>(n - i));
}
