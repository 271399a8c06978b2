// SPDX-License-Identifier: Apache-2.0
// The operations of base/vectors.ipp for AVX-512 (F, BW, VL, DQ). They use the zeroing intrinsics because GCC warns
// about the undefined source operand in the plain ones.

inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

inline V<uint8_t> load_parts(const uint8_t* const (&from)[4]) {
  __m512i x = _mm512_zextsi128_si512(load128(from[0]));
  x = _mm512_mask_broadcast_i32x4(x, 0x00F0, load128(from[1]));
  x = _mm512_mask_broadcast_i32x4(x, 0x0F00, load128(from[2]));
  return (V<uint8_t>)_mm512_mask_broadcast_i32x4(x, 0xF000, load128(from[3]));
}
inline void store_parts(uint8_t* const (&to)[4], V<uint8_t> x) {
  const __m512i v = (__m512i)x;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to[0]), _mm512_castsi512_si128(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to[1]), _mm512_maskz_extracti32x4_epi32(0xF, v, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to[2]), _mm512_maskz_extracti32x4_epi32(0xF, v, 2));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to[3]), _mm512_maskz_extracti32x4_epi32(0xF, v, 3));
}
inline V<uint8_t> load_blocks(const uint8_t* p) { return load_parts({p, p + 48, p + 96, p + 144}); }
inline void store_blocks(uint8_t* p, const V<uint8_t> (&rows)[3]) {
  for (int s = 0; s < 3; ++s) store_parts({p + 16 * s, p + 16 * s + 48, p + 16 * s + 96, p + 16 * s + 144}, rows[s]);
}
inline V<uint8_t> repeat_part(const void* p) { return (V<uint8_t>)_mm512_maskz_broadcast_i32x4(0xFFFF, load128(p)); }

inline V<uint8_t> shuffle_parts(V<uint8_t> x, V<uint8_t> by) {
  return (V<uint8_t>)_mm512_shuffle_epi8((__m512i)x, (__m512i)by);
}
inline V<uint8_t> reverse_parts(V<uint8_t> x) {
  return (V<uint8_t>)_mm512_maskz_shuffle_i64x2(0xFF, (__m512i)x, (__m512i)x, 0x1B);
}

// Mirroring moves the elements to the vector's end, so the masked store begins before `d`.
template <int Size>
inline void reverse_last(uint8_t* d, const uint8_t* s, int n, V<uint8_t> within) {
  const int bytes = n * Size, none = 64 - bytes;
  const V<uint8_t> x = (V<uint8_t>)_mm512_maskz_loadu_epi8(~__mmask64{0} >> none, s);
  _mm512_mask_storeu_epi8(d - none, ~__mmask64{0} << none, (__m512i)reverse_parts(shuffle_parts(x, within)));
}

constexpr int kLastTwelve = 4;  // read four bytes early, so as not to read beyond the end
template <bool Back>
inline V<uint8_t> load_twelves(const uint8_t* p) {
  if constexpr (Back) return load_parts({p + 32, p + 24, p + 12, p});
  else return load_parts({p, p + 12, p + 24, p + 32});
}
inline void store_twelves(uint8_t* p, V<uint8_t> x) {
  const __m512i join = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15);
  _mm512_mask_storeu_epi32(p, 0x0FFF, _mm512_maskz_permutexvar_epi32(0xFFFF, join, (__m512i)x));
}

inline V<uint8_t> pack_bytes(V<int32_t> a, V<int32_t> b, V<int32_t> c, V<int32_t> d) {
  return (V<uint8_t>)_mm512_packus_epi16(_mm512_packs_epi32((__m512i)a, (__m512i)b),
                                         _mm512_packs_epi32((__m512i)c, (__m512i)d));
}

constexpr int kWidened = 1;
inline void widen_bytes(const uint8_t* p, V<int32_t> (&to)[kWidened]) {
  to[0] = (V<int32_t>)_mm512_maskz_cvtepu8_epi32(0xFFFF, load128(p));
}

constexpr int kNarrowed = 1;
inline void narrow_bytes(uint8_t* p, const V<int32_t> (&from)[kNarrowed]) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(0xFFFF, (__m512i)from[0]));
}

// For NaN the maximum returns its second operand.
inline V<int32_t> round_to_bytes(V<float> x) {
  const __m512 low = _mm512_maskz_max_ps(0xFFFF, (__m512)x, _mm512_setzero_ps());
  return (V<int32_t>)_mm512_maskz_cvtps_epi32(0xFFFF, _mm512_maskz_min_ps(0xFFFF, low, _mm512_set1_ps(255.0f)));
}

inline V<int32_t> round_small_ints(V<float> x) { return (V<int32_t>)_mm512_maskz_cvtps_epi32(0xFFFF, (__m512)x); }

inline V<uint64_t> multiply_words(V<uint64_t> x, uint32_t by) {
  return (V<uint64_t>)_mm512_maskz_mul_epu32(0xFF, (__m512i)x, _mm512_set1_epi64(by));
}

inline V<double> multiply_add(V<double> x, V<double> y, V<double> z) {
  return (V<double>)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
}

inline V<float> square_root(V<float> x) { return (V<float>)_mm512_maskz_sqrt_ps(0xFFFF, (__m512)x); }
inline bool any_lane(V<int64_t> x) { return _mm512_test_epi64_mask((__m512i)x, (__m512i)x); }

inline V<float> load_halves(const void* p) {
  return (V<float>)_mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline void store_halves(void* p, V<float> x) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(0xFFFF, (__m512)x, 0));
}

inline __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }
inline void load_last_halves(float* d, const void* p, int n) {
  const __m256i halves = _mm256_maskz_loadu_epi16(first_lanes(n), p);
  _mm512_mask_storeu_ps(d, first_lanes(n), _mm512_maskz_cvtph_ps(0xFFFF, halves));
}
inline void store_last_halves(void* p, const float* s, int n) {
  const __m512 floats = _mm512_maskz_loadu_ps(first_lanes(n), s);
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_maskz_cvtps_ph(0xFFFF, floats, 0));
}

// The table is 128 words in four vectors. A two-vector permutation finds the word among 64, the top bit of the byte
// selects the half, and the lowest bit selects the byte of the word. Even and odd bytes are looked up separately.
class ByteTable {
 public:
  explicit ByteTable(const uint8_t* table)
      : table0_(_mm512_loadu_si512(table)),
        table1_(_mm512_loadu_si512(table + 64)),
        table2_(_mm512_loadu_si512(table + 128)),
        table3_(_mm512_loadu_si512(table + 192)) {}
  V<uint8_t> operator[](V<uint8_t> index) const {
    const __m512i v = (__m512i)index, byte = _mm512_set1_epi16(0xFF);
    const __m512i even = find(_mm512_and_si512(v, byte)), odd = find(_mm512_srli_epi16(v, 8));
    return (V<uint8_t>)_mm512_or_si512(_mm512_and_si512(even, byte), _mm512_slli_epi16(odd, 8));
  }

 private:
  // The input is words of 0..255; the low byte of each output word is the result.
  __m512i find(__m512i v) const {
    const __m512i index = _mm512_srli_epi16(v, 1);
    const __m512i low = _mm512_permutex2var_epi16(table0_, index, table1_);
    const __m512i high = _mm512_permutex2var_epi16(table2_, index, table3_);
    const __m512i word = _mm512_mask_blend_epi16(_mm512_test_epi16_mask(v, _mm512_set1_epi16(0x80)), low, high);
    return _mm512_srlv_epi16(word, _mm512_slli_epi16(_mm512_and_si512(v, _mm512_set1_epi16(1)), 3));
  }
  __m512i table0_, table1_, table2_, table3_;  // not an array, because compilers keep an array in memory
};
