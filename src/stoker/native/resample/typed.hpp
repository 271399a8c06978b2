// SPDX-License-Identifier: Apache-2.0
// Inner loops of resampling for the element types that sum in double.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/simd.hpp"
#include "shared/resample_taps.hpp"

namespace stoker::resample {

// Taps of one row: output x sums count[x] pixels from start[x] on, with the weights at weight + x * pitch.
struct TypedTaps {
  const int32_t* start;
  const int32_t* count;
  const double* weight;
  int64_t pitch;
  int64_t outputs;
  int64_t channels;
};

template <class T, int C>
void horizontal_typed(const TypedTaps& taps, const T* src, T* dst) {
  for (int64_t x = 0; x < taps.outputs; ++x) {
    const T* p = src + int64_t{taps.start[x]} * C;
    const double* w = taps.weight + x * taps.pitch;
    double sum[C] = {};
    for (int32_t t = 0; t < taps.count[x]; ++t)
      for (int c = 0; c < C; ++c) sum[c] += static_cast<double>(p[int64_t{t} * C + c]) * w[t];
    for (int c = 0; c < C; ++c) dst[x * C + c] = from_double<T>(sum[c]);
  }
}

template <class T>
void horizontal_typed_any(const TypedTaps& taps, const T* src, T* dst) {
  const int64_t channels = taps.channels;
  for (int64_t x = 0; x < taps.outputs; ++x) {
    const T* p = src + taps.start[x] * channels;
    const double* w = taps.weight + x * taps.pitch;
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0.0;
      for (int32_t t = 0; t < taps.count[x]; ++t) sum += static_cast<double>(p[t * channels + c]) * w[t];
      dst[x * channels + c] = from_double<T>(sum);
    }
  }
}

template <class T>
void horizontal(const TypedTaps& taps, const T* src, T* dst) {
  switch (taps.channels) {
    case 1: return horizontal_typed<T, 1>(taps, src, dst);
    case 3: return horizontal_typed<T, 3>(taps, src, dst);
    case 4: return horizontal_typed<T, 4>(taps, src, dst);
    default: return horizontal_typed_any<T>(taps, src, dst);
  }
}

template <class T>
[[gnu::always_inline]] inline void vertical_typed(const T* const* rows, const double* weight, int32_t count, T* out,
                                                  int64_t n) {
  constexpr int64_t kChunk = 256;  // the sums stay in the L1 cache
  for (int64_t i0 = 0; i0 < n; i0 += kChunk) {
    const int64_t m = std::min(kChunk, n - i0);
    double sum[kChunk];
    std::fill_n(sum, m, 0.0);
    for (int32_t t = 0; t < count; ++t) {
      const T* row = rows[t] + i0;
      const double w = weight[t];
      for (int64_t i = 0; i < m; ++i) sum[i] += static_cast<double>(row[i]) * w;
    }
    for (int64_t i = 0; i < m; ++i) out[i0 + i] = from_double<T>(sum[i]);
  }
}

template <class T>
void vertical_baseline(const T* const* rows, const double* weight, int32_t count, T* out, int64_t n) {
  vertical_typed(rows, weight, count, out, n);
}

// Wider registers with the same operations per element: STOKER_WIDE does not include fused multiply-add.
template <class T>
STOKER_WIDE void vertical_wide(const T* const* rows, const double* weight, int32_t count, T* out, int64_t n) {
  vertical_typed(rows, weight, count, out, n);
}

}  // namespace stoker::resample
