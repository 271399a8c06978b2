// SPDX-License-Identifier: Apache-2.0
// The scheme of weights is that of ATen's UpSampleKernel.cpp for floats. Its sums over taps are vectorised four by four: of
// every whole four after the first tap products are rounded before they are added, the others are fused.
#include "torch_resize_float.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "simd.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::torch_resize {

namespace {

// What every output reads along one axis.
struct FloatTaps {
  std::vector<int32_t> start, count;
  std::vector<float> weights;  // `room` per output
  int64_t room = 0;

  FloatTaps(int64_t in, int64_t out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    const float support = scale >= 1.0f ? scale : 1.0f, inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
    room = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
    start.resize(static_cast<size_t>(out));
    count.resize(static_cast<size_t>(out));
    weights.resize(static_cast<size_t>(out * room));
    for (int64_t i = 0; i < out; ++i) {
      // Halves are doubles there, and so are the sums and the product that they are part of.
      const float center = scale * (static_cast<float>(i) + 0.5f);
      const int64_t first = std::max<int64_t>(static_cast<int64_t>(static_cast<double>(center - support) + 0.5), 0);
      const int64_t end = std::min<int64_t>(static_cast<int64_t>(static_cast<double>(center + support) + 0.5), in);
      const int64_t n = std::clamp<int64_t>(end - first, 0, room);
      float* w = weights.data() + i * room;
      float total = 0.0f;
      for (int64_t j = 0; j < n; ++j) {
        const auto from_center = static_cast<double>(static_cast<float>(j + first) - center) + 0.5;
        const float x = std::fabs(static_cast<float>(from_center * static_cast<double>(inverse)));
        w[j] = x < 1.0f ? 1.0f - x : 0.0f;
        total += w[j];
      }
      for (int64_t j = 0; j < n && total != 0.0f; ++j) w[j] /= total;
      start[static_cast<size_t>(i)] = static_cast<int32_t>(std::min(first, in - 1));
      count[static_cast<size_t>(i)] = static_cast<int32_t>(std::max<int64_t>(n, 1));
    }
  }
  // Up to where products are rounded before they are added.
  static int64_t rounded(int64_t n) { return 1 + (n - 1) / 4 * 4; }
};

void across_plain(const FloatTaps& taps, const uint8_t* row, int64_t channels, int64_t out, float* to) {
  for (int64_t x = 0; x < out; ++x) {
    const float* w = taps.weights.data() + x * taps.room;
    const int64_t n = taps.count[static_cast<size_t>(x)], rounded = FloatTaps::rounded(n);
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * channels + c;
      float sum = static_cast<float>(*from) * w[0];
      int64_t j = 1;
      for (; j < rounded; ++j) sum += static_cast<float>(from[j * channels]) * w[j];
      for (; j < n; ++j) sum = std::fma(static_cast<float>(from[j * channels]), w[j], sum);
      *to++ = sum;
    }
  }
}

template <bool kFused>
[[gnu::always_inline]] inline void add_row(const float* row, float w, int64_t n, float* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] = kFused ? __builtin_fmaf(row[i], w, sums[i]) : sums[i] + row[i] * w;
}

// One row of the result, through `sums`.
[[gnu::always_inline]] inline void down(const FloatTaps& taps, int64_t y, const float* rows, int64_t n, float* sums,
                                        uint8_t* to) {
  const float* w = taps.weights.data() + y * taps.room;
  const float* from = rows + taps.start[static_cast<size_t>(y)] * n;
  const int64_t count = taps.count[static_cast<size_t>(y)], rounded = FloatTaps::rounded(count);
  for (int64_t i = 0; i < n; ++i) sums[i] = from[i] * w[0];
  int64_t j = 1;
  for (; j < rounded; ++j) add_row<false>(from + j * n, w[j], n, sums);
  for (; j < count; ++j) add_row<true>(from + j * n, w[j], n, sums);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(static_cast<int32_t>(__builtin_rintf(sums[i])));
}

void down_plain(const FloatTaps& taps, int64_t y, const float* rows, int64_t n, float* sums, uint8_t* to) {
  down(taps, y, rows, n, sums, to);
}

#if defined(__x86_64__)

#define STOKER_FMA __attribute__((target("avx2,fma")))

STOKER_FMA void down_fma(const FloatTaps& taps, int64_t y, const float* rows, int64_t n, float* sums, uint8_t* to) {
  down(taps, y, rows, n, sums, to);
}

STOKER_FMA __m128 pixel(const uint8_t* from) {
  int32_t bytes;
  std::memcpy(&bytes, from, 4);
  return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

// Three channels in one register. Rows have room behind them, and so has the result.
STOKER_FMA void across3_fma(const FloatTaps& taps, const uint8_t* row, int64_t out, float* to) {
  for (int64_t x = 0; x < out; ++x, to += 3) {
    const float* w = taps.weights.data() + x * taps.room;
    const int64_t n = taps.count[static_cast<size_t>(x)], rounded = FloatTaps::rounded(n);
    const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * 3;
    __m128 sum = _mm_mul_ps(pixel(from), _mm_set1_ps(w[0]));
    int64_t j = 1;
    for (; j < rounded; ++j) sum = _mm_add_ps(sum, _mm_mul_ps(pixel(from + 3 * j), _mm_set1_ps(w[j])));
    for (; j < n; ++j) sum = _mm_fmadd_ps(pixel(from + 3 * j), _mm_set1_ps(w[j]), sum);
    _mm_storeu_ps(to, sum);
  }
}

bool has_fma() { return (isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma"); }

#endif

void across(const FloatTaps& taps, const uint8_t* row, int64_t channels, int64_t out, float* to) {
#if defined(__x86_64__)
  if (channels == 3 && has_fma()) return across3_fma(taps, row, out, to);
#endif
  across_plain(taps, row, channels, out, to);
}

using Down = void (*)(const FloatTaps&, int64_t, const float*, int64_t, float*, uint8_t*);

Down down_here() {
#if defined(__x86_64__)
  if (has_fma()) return down_fma;
#endif
  return down_plain;
}

}  // namespace

bool resize_in_floats(const View& src, const View& dst, Scratch& scratch) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != DType::U8 || dst.dtype != DType::U8) return false;
  const int64_t channels = src.shape[2], rows = src.shape[0], n = dst.shape[1] * channels;
  if (src.elements() == 0 || dst.elements() == 0 || dst.shape[2] != channels) return false;
  if (dst.stride[2] != 1 || dst.stride[1] != channels) return false;
  constexpr int64_t kSlack = 4;
  const int64_t line_size = (src.shape[1] * channels + kSlack + 63) / 64 * 64;
  const auto floats = static_cast<size_t>(rows * n + kSlack + n) * sizeof(float);
  auto* middle = reinterpret_cast<float*>(scratch.get(floats + static_cast<size_t>(line_size)));
  float* sums = middle + rows * n + kSlack;
  auto* line = reinterpret_cast<uint8_t*>(sums + n);
  const FloatTaps horizontal(src.shape[1], dst.shape[1]), vertical(rows, dst.shape[0]);
  for (int64_t y = 0; y < rows; ++y) {
    const uint8_t* row = src.data + y * src.stride[0];
    if (src.stride[2] == 1 && src.stride[1] == channels) {
      std::memcpy(line, row, static_cast<size_t>(src.shape[1] * channels));
    } else {
      uint8_t* to = line;
      for (int64_t x = 0; x < src.shape[1]; ++x)
        for (int64_t c = 0; c < channels; ++c) *to++ = row[x * src.stride[1] + c * src.stride[2]];
    }
    across(horizontal, line, channels, dst.shape[1], middle + y * n);
  }
  const Down down_row = down_here();
  for (int64_t y = 0; y < dst.shape[0]; ++y) down_row(vertical, y, middle, n, sums, dst.data + y * dst.stride[0]);
  return true;
}

}  // namespace stoker::torch_resize
