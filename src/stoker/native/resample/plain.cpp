// SPDX-License-Identifier: Apache-2.0
// Plain forms of all 8-bit kernels, and the choice among the instruction sets.
#include <algorithm>

#include "base/simd.hpp"
#include "resample/kernels.hpp"

namespace stoker::resample {

namespace {

template <int C>
void horizontal_row(const RowTaps& taps, const uint8_t* src, uint8_t* dst, int64_t x0, int64_t x1) {
  const int64_t count = taps.groups * kGroup;
  for (int64_t x = x0; x < x1; ++x) {
    const uint8_t* p = src + int64_t{taps.start[x]} * C;
    const uint32_t* w = taps.packed + x * count;
    uint32_t sum[C];
    for (int c = 0; c < C; ++c) sum[c] = kFixedHalf;
    for (int64_t t = 0; t < count; ++t)
      for (int c = 0; c < C; ++c) sum[c] += p[t * C + c] * w[t];
    for (int c = 0; c < C; ++c) dst[x * C + c] = from_fixed(sum[c]);
  }
}

void horizontal_row_any(const RowTaps& taps, const uint8_t* src, uint8_t* dst, int64_t x0, int64_t x1) {
  const int64_t count = taps.groups * kGroup, channels = taps.channels;
  constexpr int64_t kChunk = 64;  // channels summed at a time, so that the sums need no heap memory
  for (int64_t x = x0; x < x1; ++x) {
    const uint8_t* p = src + int64_t{taps.start[x]} * channels;
    const uint32_t* w = taps.packed + x * count;
    for (int64_t c0 = 0; c0 < channels; c0 += kChunk) {
      const int64_t n = std::min(kChunk, channels - c0);
      uint32_t sum[kChunk];
      std::fill_n(sum, n, kFixedHalf);
      for (int64_t t = 0; t < count; ++t)
        for (int64_t c = 0; c < n; ++c) sum[c] += p[t * channels + c0 + c] * w[t];
      for (int64_t c = 0; c < n; ++c) dst[x * channels + c0 + c] = from_fixed(sum[c]);
    }
  }
}

void vertical_plain(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out, int64_t n) {
  constexpr int64_t kChunk = 256;
  for (int64_t i0 = 0; i0 < n; i0 += kChunk) {
    const int64_t m = std::min(kChunk, n - i0);
    uint32_t sum[kChunk];
    std::fill_n(sum, m, kFixedHalf);
    for (int64_t t = 0; t < groups * kGroup; ++t)
      for (int64_t i = 0; i < m; ++i) sum[i] += rows[t][i0 + i] * packed[t];
    for (int64_t i = 0; i < m; ++i) out[i0 + i] = from_fixed(sum[i]);
  }
}

}  // namespace

void horizontal_plain(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                      int64_t x1) {
  for (int r = 0; r < kRows; ++r) {
    if (r > 0 && dst[r] == dst[r - 1]) continue;  // a short batch repeats its last row
    switch (taps.channels) {
      case 1: horizontal_row<1>(taps, src[r], dst[r], x0, x1); break;
      case 2: horizontal_row<2>(taps, src[r], dst[r], x0, x1); break;
      case 3: horizontal_row<3>(taps, src[r], dst[r], x0, x1); break;
      case 4: horizontal_row<4>(taps, src[r], dst[r], x0, x1); break;
      default: horizontal_row_any(taps, src[r], dst[r], x0, x1);
    }
  }
}

const Kernels kPlainKernels{Packing::Whole, false,   horizontal_plain, vertical_plain,
                            nullptr,        nullptr, nullptr,          nullptr};

const Kernels& kernels() {
#if defined(__x86_64__)
  static const bool vnni = __builtin_cpu_supports("avx512vnni");
  const Isa level = isa();
  if (level == Isa::AVX512 && vnni) return kVnniKernels;
  if (level == Isa::AVX2 || level == Isa::AVX512) return kAvx2Kernels;
#elif defined(__aarch64__)
  if (isa() == Isa::NEON) return kNeonKernels;
#endif
  return kPlainKernels;
}

}  // namespace stoker::resample
