// SPDX-License-Identifier: Apache-2.0
// The operations of base/vectors.ipp for AVX2 with F16C.

inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline void store128(void* p, __m128i x) { _mm_storeu_si128(static_cast<__m128i*>(p), x); }

inline V<uint8_t> load_parts(const uint8_t* const (&from)[2]) {
  return (V<uint8_t>)_mm256_inserti128_si256(_mm256_castsi128_si256(load128(from[0])), load128(from[1]), 1);
}
inline void store_parts(uint8_t* const (&to)[2], V<uint8_t> x) {
  store128(to[0], _mm256_castsi256_si128((__m256i)x));
  store128(to[1], _mm256_extracti128_si256((__m256i)x, 1));
}
// A blend can run on more units than an insertion.
inline V<uint8_t> load_blocks(const uint8_t* p) {
  const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  return (V<uint8_t>)_mm256_blend_epi32(_mm256_castsi128_si256(load128(p)), second, 0xF0);
}
inline void store_blocks(uint8_t* p, const V<uint8_t> (&rows)[3]) {
  const auto a = (__m256i)rows[0], b = (__m256i)rows[1], c = (__m256i)rows[2];
  store_vector<uint8_t>(p, (V<uint8_t>)_mm256_permute2x128_si256(a, b, 0x20));
  store_vector<uint8_t>(p + 32, (V<uint8_t>)_mm256_blend_epi32(c, a, 0xF0));
  store_vector<uint8_t>(p + 64, (V<uint8_t>)_mm256_permute2x128_si256(b, c, 0x31));
}
inline V<uint8_t> repeat_part(const void* p) { return (V<uint8_t>)_mm256_broadcastsi128_si256(load128(p)); }

inline V<uint8_t> shuffle_parts(V<uint8_t> x, V<uint8_t> by) {
  return (V<uint8_t>)_mm256_shuffle_epi8((__m256i)x, (__m256i)by);
}
inline V<uint8_t> reverse_parts(V<uint8_t> x) { return (V<uint8_t>)_mm256_permute4x64_epi64((__m256i)x, 0x4E); }

template <int Size>
inline void reverse_last(uint8_t* d, const uint8_t* s, int n, V<uint8_t>) {
  reverse_each<Size>(d, s, n);
}

constexpr int kLastTwelve = 4;  // read four bytes early, so as not to read beyond the end
template <bool Back>
inline V<uint8_t> load_twelves(const uint8_t* p) {
  constexpr int kFirst = Back ? 8 : 0;
  return load_parts({p + kFirst, p + 8 - kFirst});
}
inline void store_twelves(uint8_t* p, V<uint8_t> x) {
  const __m256i joined = _mm256_permutevar8x32_epi32((__m256i)x, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
  store128(p, _mm256_castsi256_si128(joined));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p + 16), _mm256_extracti128_si256(joined, 1));
}

inline V<uint8_t> pack_bytes(V<int32_t> a, V<int32_t> b, V<int32_t> c, V<int32_t> d) {
  return (V<uint8_t>)_mm256_packus_epi16(_mm256_packs_epi32((__m256i)a, (__m256i)b),
                                         _mm256_packs_epi32((__m256i)c, (__m256i)d));
}

constexpr int kWidened = 1;
inline void widen_bytes(const uint8_t* p, V<int32_t> (&to)[kWidened]) {
  to[0] = (V<int32_t>)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

constexpr int kNarrowed = 4;
// The packs saturate, so the low bytes are masked first.
inline void narrow_bytes(uint8_t* p, const V<int32_t> (&from)[kNarrowed]) {
  const V<int32_t> a = from[0] & 255, b = from[1] & 255, c = from[2] & 255, d = from[3] & 255;
  const __m256i words0 = _mm256_packus_epi32((__m256i)a, (__m256i)b),
                words1 = _mm256_packus_epi32((__m256i)c, (__m256i)d);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  store_vector<uint8_t>(p, (V<uint8_t>)_mm256_permutevar8x32_epi32(_mm256_packus_epi16(words0, words1), order));
}

// For NaN the maximum returns its second operand.
inline V<int32_t> round_to_bytes(V<float> x) {
  const __m256 low = _mm256_max_ps((__m256)x, _mm256_setzero_ps());
  return (V<int32_t>)_mm256_cvtps_epi32(_mm256_min_ps(low, _mm256_set1_ps(255.0f)));
}

inline V<int32_t> round_small_ints(V<float> x) { return (V<int32_t>)_mm256_cvtps_epi32((__m256)x); }

inline V<uint64_t> multiply_words(V<uint64_t> x, uint32_t by) {
  return (V<uint64_t>)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(by));
}

#if defined(STOKER_VECTOR_FMA)
inline V<double> multiply_add(V<double> x, V<double> y, V<double> z) {
  return (V<double>)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
}
#else
inline V<double> multiply_add(V<double> x, V<double> y, V<double> z) { return x * y + z; }
#endif

inline V<float> square_root(V<float> x) { return (V<float>)_mm256_sqrt_ps((__m256)x); }
inline bool any_lane(V<int64_t> x) { return !_mm256_testz_si256((__m256i)x, (__m256i)x); }

inline V<float> load_halves(const void* p) { return (V<float>)_mm256_cvtph_ps(load128(p)); }
inline void store_halves(void* p, V<float> x) { store128(p, _mm256_cvtps_ph((__m256)x, 0)); }

inline void load_last_halves(float* d, const void* p, int n) { load_each_half(d, p, n); }
inline void store_last_halves(void* p, const float* s, int n) { store_each_half(p, s, n); }

// The table is 16 shuffles of 16 bytes. A shuffle yields 0 for negative indices and otherwise uses only their low four
// bits; so with the index v - 16 h, row h takes part for all v >= 16 h. Each row holds the exclusive or with the row
// before it, so the rows that take part telescope to the right entry. Bytes above 127 are negative as signed numbers
// and go through a second half.
class ByteTable {
 public:
  explicit ByteTable(const uint8_t* table) {
    for (int h = 0; h < 16; ++h) {
      __m128i x = load128(table + 16 * h);
      if (h % 8) x = _mm_xor_si128(x, load128(table + 16 * (h - 1)));
      row_[h] = _mm256_broadcastsi128_si256(x);
    }
  }
  V<uint8_t> operator[](V<uint8_t> index) const {
    const __m256i v = (__m256i)index, sixteen = _mm256_set1_epi8(16);
    __m256i a = v, b = _mm256_xor_si256(v, _mm256_set1_epi8(-128));
    __m256i low = _mm256_shuffle_epi8(row_[0], a), high = _mm256_shuffle_epi8(row_[8], b);
    for (int h = 1; h < 8; ++h) {
      a = _mm256_sub_epi8(a, sixteen);
      b = _mm256_sub_epi8(b, sixteen);
      low = _mm256_xor_si256(low, _mm256_shuffle_epi8(row_[h], a));
      high = _mm256_xor_si256(high, _mm256_shuffle_epi8(row_[8 + h], b));
    }
    return (V<uint8_t>)_mm256_blendv_epi8(low, high, v);
  }

 private:
  __m256i row_[16];
};
