// SPDX-License-Identifier: Apache-2.0
#include "torch_resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd.hpp"
#include "torch_resize_taps.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::torch_resize {

namespace {

constexpr int64_t kSlack = 64;  // bytes behind a row that may be read

int32_t low(int32_t pair) { return static_cast<int16_t>(pair & 0xffff); }
int32_t high(int32_t pair) { return pair >> 16; }
uint8_t byte(int32_t sum, int precision) { return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255)); }

// One row of `channels` bytes per pixel; kSlack bytes may be read behind it.
void across_plain(const Taps& taps, const uint8_t* row, int64_t channels, int64_t out, uint8_t* to) {
  for (int64_t x = 0; x < out; ++x) {
    const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * channels;
    const int32_t* pair = taps.pairs.data() + x * taps.most;
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = taps.half();
      for (int64_t k = 0; k < taps.most; ++k) {
        const uint8_t* p = from + 2 * k * channels + c;
        sum += p[0] * low(pair[k]);
        if (high(pair[k])) sum += p[channels] * high(pair[k]);
      }
      *to++ = byte(sum, taps.precision);
    }
  }
}

// One output row out of source rows `pitch` bytes apart; `last` is the last one that is there.
void down_plain(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n, uint8_t* to) {
  const int32_t* pair = taps.pairs.data() + y * taps.most;
  const int64_t first = taps.start[static_cast<size_t>(y)];
  for (int64_t i = 0; i < n; ++i) {
    int32_t sum = taps.half();
    for (int64_t k = 0; k < taps.most; ++k) {
      const int64_t a = std::min(first + 2 * k, last), b = std::min(a + 1, last);
      sum += rows[a * pitch + i] * low(pair[k]) + rows[b * pitch + i] * high(pair[k]);
    }
    to[i] = byte(sum, taps.precision);
  }
}

#if defined(__x86_64__)

#define STOKER_AVX2 __attribute__((target("avx2")))

// Three channels: two pixels' bytes as pairs (r r g g b b), one multiplication for both. `kMost` pairs, or any number (0).
template <int kMost>
STOKER_AVX2 void across3_avx2(const Taps& taps, const uint8_t* row, int64_t out, uint8_t* to) {
  const int64_t most = kMost ? kMost : taps.most;
  const __m128i spread = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  const __m128i shift = _mm_cvtsi32_si128(taps.precision);
  for (int64_t x = 0; x < out; ++x, to += 3) {
    const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * 3;
    const int32_t* pair = taps.pairs.data() + x * most;
    __m128i sum = _mm_set1_epi32(taps.half());
    for (int64_t k = 0; k < most; ++k, from += 6) {
      const __m128i pixels = _mm_shuffle_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), spread);
      sum = _mm_add_epi32(sum, _mm_madd_epi16(pixels, _mm_set1_epi32(pair[k])));
    }
    sum = _mm_sra_epi32(sum, shift);
    sum = _mm_packs_epi32(sum, sum);
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    std::memcpy(to, &bytes, 3);
  }
}

void across3_any(const Taps& taps, const uint8_t* row, int64_t out, uint8_t* to) {
  switch (taps.most) {
    case 1: return across3_avx2<1>(taps, row, out, to);
    case 2: return across3_avx2<2>(taps, row, out, to);
    case 3: return across3_avx2<3>(taps, row, out, to);
    case 4: return across3_avx2<4>(taps, row, out, to);
    default: return across3_avx2<0>(taps, row, out, to);
  }
}

STOKER_AVX2 void down_avx2(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n,
                           uint8_t* to) {
  const int32_t* pair = taps.pairs.data() + y * taps.most;
  const int64_t first = taps.start[static_cast<size_t>(y)];
  const __m128i shift = _mm_cvtsi32_si128(taps.precision);
  for (int64_t i = 0; i < n; i += 16) {  // rows have room behind them
    __m256i low = _mm256_set1_epi32(taps.half()), high = low;
    for (int64_t k = 0; k < taps.most; ++k) {
      const int64_t a = std::min(first + 2 * k, last), b = std::min(a + 1, last);
      const __m128i p = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + a * pitch + i));
      const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + b * pitch + i));
      const __m256i weights = _mm256_set1_epi32(pair[k]);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(p, q)), weights));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(p, q)), weights));
    }
    low = _mm256_sra_epi32(low, shift);
    high = _mm256_sra_epi32(high, shift);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    if (n - i >= 16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bytes);
    } else {
      uint8_t rest[16];
      _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), bytes);
      std::memcpy(to + i, rest, static_cast<size_t>(n - i));
    }
  }
}

#endif

void across(const Taps& taps, const uint8_t* row, int64_t channels, int64_t out, uint8_t* to) {
#if defined(__x86_64__)
  if (channels == 3 && (isa() == Isa::AVX2 || isa() == Isa::AVX512)) return across3_any(taps, row, out, to);
#endif
  across_plain(taps, row, channels, out, to);
}

void down(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n, uint8_t* to) {
#if defined(__x86_64__)
  if (isa() == Isa::AVX2 || isa() == Isa::AVX512) return down_avx2(taps, y, rows, pitch, last, n, to);
#endif
  down_plain(taps, y, rows, pitch, last, n, to);
}

void copy_row(const View& src, int64_t y, uint8_t* to) {
  const uint8_t* row = src.data + y * src.stride[0];
  if (src.stride[2] == 1 && src.stride[1] == src.shape[2]) {
    std::memcpy(to, row, static_cast<size_t>(src.shape[1] * src.shape[2]));
    return;
  }
  for (int64_t x = 0; x < src.shape[1]; ++x)
    for (int64_t c = 0; c < src.shape[2]; ++c) *to++ = row[x * src.stride[1] + c * src.stride[2]];
}

bool fits(const View& src, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != dst.dtype || src.shape[2] != dst.shape[2]) return false;
  return src.elements() > 0 && dst.elements() > 0;
}

}  // namespace

bool resize(const View& src, Filter filter, bool smooth, const View& dst, Scratch& scratch) {
  if (!fits(src, dst) || src.dtype != DType::U8 || dst.stride[2] != 1 || dst.stride[1] != dst.shape[2]) return false;
  const int64_t channels = src.shape[2], rows = src.shape[0], values = dst.shape[1] * channels;
  const int64_t pitch = values + kSlack, room = (src.shape[1] + 1) * channels + kSlack;
  uint8_t* line = scratch.get(static_cast<size_t>(room + rows * pitch));
  uint8_t* middle = line + room;
  std::memset(line, 0, static_cast<size_t>(room));
  const bool wide = src.shape[1] != dst.shape[1], tall = rows != dst.shape[0];
  const Taps horizontal(filter, smooth, wide ? src.shape[1] : 1, wide ? dst.shape[1] : 1);
  for (int64_t y = 0; y < rows; ++y) {
    uint8_t* to = middle + y * pitch;
    copy_row(src, y, wide ? line : to);
    if (wide) across(horizontal, line, channels, dst.shape[1], to);
  }
  const Taps vertical(filter, smooth, tall ? rows : 1, tall ? dst.shape[0] : 1);
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    uint8_t* to = dst.data + y * dst.stride[0];
    if (tall) down(vertical, y, middle, pitch, rows - 1, values, to);
    else std::memcpy(to, middle + y * pitch, static_cast<size_t>(values));
  }
  return true;
}

bool pick(const View& src, bool exact, const View& dst, Scratch& scratch) {
  if (!fits(src, dst)) return false;
  const auto index = [exact](int64_t i, int64_t in, int64_t out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    if (exact) return std::min<int64_t>(static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * scale)), in - 1);
    if (in == out) return i;
    if (out == 2 * in) return i >> 1;
    return std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1);
  };
  auto* columns = reinterpret_cast<int64_t*>(scratch.get(static_cast<size_t>(dst.shape[1]) * sizeof(int64_t)));
  for (int64_t x = 0; x < dst.shape[1]; ++x) columns[x] = index(x, src.shape[1], dst.shape[1]) * src.stride[1];
  const auto size = static_cast<size_t>(size_of(src.dtype));
  const bool together = size == 1 && src.shape[2] == 3 && src.stride[2] == 1 && dst.stride[2] == 1 && dst.stride[1] == 3;
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    const uint8_t* row = src.data + index(y, src.shape[0], dst.shape[0]) * src.stride[0];
    uint8_t* to = dst.data + y * dst.stride[0];
    if (together) {
      for (int64_t x = 0; x < dst.shape[1]; ++x) std::memcpy(to + 3 * x, row + columns[x], 3);
      continue;
    }
    for (int64_t x = 0; x < dst.shape[1]; ++x)
      for (int64_t c = 0; c < dst.shape[2]; ++c)
        std::memcpy(to + x * dst.stride[1] + c * dst.stride[2], row + columns[x] + c * src.stride[2], size);
  }
  return true;
}

}  // namespace stoker::torch_resize
