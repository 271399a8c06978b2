// SPDX-License-Identifier: Apache-2.0
#include "jpeg/rows.hpp"

#include <cstring>

#include "base/simd.hpp"
#include "jpeg/neon.hpp"
#include "jpeg/x86.hpp"
#include "shared/jpeg_arithmetic.cuh"
#if defined(__x86_64__)
#include <immintrin.h>
#define STOKER_AVX2 __attribute__((target("avx2")))
#endif

namespace stoker::jpeg {
namespace {

void double_width_plain(const uint8_t* in, int n, uint8_t* out) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = static_cast<uint8_t>(between(in[i], in[i - 1], 1));
    out[2 * i + 1] = static_cast<uint8_t>(between(in[i], in[i + 1], 2));
  }
}

void double_height_plain(const uint8_t* near, const uint8_t* far, int bias, int n, uint8_t* out) {
  for (int i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(between(near[i], far[i], bias));
}

void double_both_plain(const uint8_t* near, const uint8_t* far, int n, int16_t* sums, uint8_t* out) {
  int16_t* const s = sums + 1;
  for (int i = -1; i <= n; ++i) s[i] = static_cast<int16_t>(column_sum(near[i], far[i]));
  for (int i = 0; i < n; ++i) {
    out[2 * i] = static_cast<uint8_t>(corner(s[i], s[i - 1], 8));
    out[2 * i + 1] = static_cast<uint8_t>(corner(s[i], s[i + 1], 7));
  }
}

template <bool kBgr>
void ycc_plain(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n) {
  for (int i = 0; i < n; ++i, dst += 3) {
    const Pixel pixel = ycc_to_rgb(y[i], cb[i], cr[i]);
    dst[0] = kBgr ? pixel.c : pixel.a;
    dst[1] = pixel.b;
    dst[2] = kBgr ? pixel.a : pixel.c;
  }
}

void interleave_plain(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst, int n) {
  for (int i = 0; i < n; ++i, dst += 3) {
    dst[0] = a[i];
    dst[1] = b[i];
    dst[2] = c[i];
  }
}

constexpr RowKernels kPlain = {double_width_plain, double_height_plain, double_both_plain,
                               ycc_plain<false>,   ycc_plain<true>,     interleave_plain};

#if defined(__x86_64__)

STOKER_AVX2 inline __m256i widen(const uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
STOKER_AVX2 inline __m256i load32(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
STOKER_AVX2 inline void store32(void* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
STOKER_AVX2 inline __m256i times3(__m256i v) { return _mm256_add_epi16(v, _mm256_add_epi16(v, v)); }

// Interleave 16 even and 16 odd results of at most 8 bits to 32 samples and store them.
STOKER_AVX2 inline void store_alternating(uint8_t* out, __m256i even, __m256i odd) {
  store32(out, _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

STOKER_AVX2 void double_width_avx2(const uint8_t* in, int n, uint8_t* out) {
  const __m256i one = _mm256_set1_epi16(1), two = _mm256_set1_epi16(2);
  for (int i = 0; i < n; i += 16) {
    const __m256i three = times3(widen(in + i));
    const __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, one), widen(in + i - 1));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(three, two), widen(in + i + 1));
    store_alternating(out + 2 * i, _mm256_srli_epi16(even, 2), _mm256_srli_epi16(odd, 2));
  }
}

STOKER_AVX2 void double_height_avx2(const uint8_t* near, const uint8_t* far, int bias, int n, uint8_t* out) {
  const __m256i b = _mm256_set1_epi16(static_cast<int16_t>(bias));
  for (int i = 0; i < n; i += 16) {
    const __m256i sum = _mm256_add_epi16(times3(widen(near + i)), _mm256_add_epi16(widen(far + i), b));
    const __m256i v = _mm256_srli_epi16(sum, 2);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(v, v), _MM_SHUFFLE(3, 1, 2, 0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_castsi256_si128(bytes));
  }
}

STOKER_AVX2 void double_both_avx2(const uint8_t* near, const uint8_t* far, int n, int16_t* sums, uint8_t* out) {
  for (int i = 0; i < n + 2; i += 16)
    store32(sums + i, _mm256_add_epi16(times3(widen(near + i - 1)), widen(far + i - 1)));
  const auto load = [](const int16_t* p) { return reinterpret_cast<const __m256i*>(p); };
  const __m256i seven = _mm256_set1_epi16(7), eight = _mm256_set1_epi16(8);
  for (int i = 0; i < n; i += 16) {
    const __m256i three = times3(_mm256_loadu_si256(load(sums + i + 1)));
    const __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, eight), _mm256_loadu_si256(load(sums + i)));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(three, seven), _mm256_loadu_si256(load(sums + i + 2)));
    store_alternating(out + 2 * i, _mm256_srli_epi16(even, 4), _mm256_srli_epi16(odd, 4));
  }
}

// Masks that spread 16 bytes of one plane over three blocks of 16: byte j of block k belongs to plane (16k + j) % 3.
struct SpreadMasks {
  alignas(16) int8_t at[3][3][16];  // [plane][block]
  constexpr SpreadMasks() : at() {
    for (int plane = 0; plane < 3; ++plane)
      for (int j = 0; j < 48; ++j)
        at[plane][j / 16][j % 16] = j % 3 == plane ? static_cast<int8_t>(j / 3) : static_cast<int8_t>(-128);
  }
};
constexpr SpreadMasks kSpread;

STOKER_AVX2 inline __m256i spread(__m256i v, int plane, int block) {
  const __m128i mask = _mm_load_si128(reinterpret_cast<const __m128i*>(kSpread.at[plane][block]));
  return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(mask));
}

// Interleave 32 pixels of three planes to 96 bytes.
STOKER_AVX2 inline void store_pixels(uint8_t* dst, __m256i a, __m256i b, __m256i c) {
  __m256i block[3];
  for (int k = 0; k < 3; ++k)
    block[k] = _mm256_or_si256(_mm256_or_si256(spread(a, 0, k), spread(b, 1, k)), spread(c, 2, k));
  // Lanes have pixels 0..15 and 16..31.
  store32(dst, _mm256_permute2x128_si256(block[0], block[1], 0x20));
  store32(dst + 32, _mm256_permute2x128_si256(block[2], block[0], 0x30));
  store32(dst + 64, _mm256_permute2x128_si256(block[1], block[2], 0x31));
}

STOKER_AVX2 inline __m256i add_products(__m256i sums, __m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_madd_epi16(a, b), sums);
}
STOKER_AVX2 inline __m256i high_words(__m256i lo, __m256i hi) {
  return _mm256_packs_epi32(_mm256_srai_epi32(lo, 16), _mm256_srai_epi32(hi, 16));
}

#define STOKER_TARGET STOKER_AVX2
#include "jpeg/color_x86.ipp"
#undef STOKER_TARGET

constexpr RowKernels kAvx2 = {double_width_avx2, double_height_avx2, double_both_avx2,
                              ycc_wide<false>,   ycc_wide<true>,     interleave_wide};
#endif

}  // namespace

const RowKernels& row_kernels() {
#if defined(__x86_64__)
  if (has_vbmi2()) {
    static const RowKernels mixed = [] {
      const PixelWriters writers = pixel_writers_vbmi2();
      RowKernels kernels = kAvx2;
      kernels.ycc_to_rgb = writers.ycc_to_rgb;
      kernels.ycc_to_bgr = writers.ycc_to_bgr;
      kernels.interleave = writers.interleave;
      return kernels;
    }();
    return mixed;
  }
  if (isa() != Isa::Plain) return kAvx2;
#elif defined(__aarch64__)
  if (isa() != Isa::Plain) return row_kernels_neon();
#endif
  return kPlain;
}

void repeat_samples(const uint8_t* in, int n, int factor, uint8_t* out) {
  for (int i = 0; i < n; ++i, out += factor) std::memset(out, in[i], static_cast<size_t>(factor));
}

void rgb_to_gray(const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* dst, int n) {
  for (int i = 0; i < n; ++i) dst[i] = luma(r[i], g[i], b[i]);
}

void rgb_to_ycc(const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* dst, int n) {
  for (int i = 0; i < n; ++i, dst += 3) {
    const Pixel pixel = rgb_to_ycc(r[i], g[i], b[i]);
    dst[0] = pixel.a;
    dst[1] = pixel.b;
    dst[2] = pixel.c;
  }
}

void inks_to_rgb(const uint8_t* black, bool negative, uint8_t* pixels, int n) {
  const int flip = negative ? 255 : 0;
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < 3; ++c, ++pixels) {
      const int product = (*pixels ^ flip) * black[i] + 128;
      *pixels = to_byte(black[i] - (((product >> 8) + product) >> 8));
    }
  }
}

void interleaved_rgb_to_gray(const uint8_t* pixels, uint8_t* dst, int n) {
  for (int i = 0; i < n; ++i, pixels += 3) dst[i] = luma(pixels[0], pixels[1], pixels[2]);
}

}  // namespace stoker::jpeg
