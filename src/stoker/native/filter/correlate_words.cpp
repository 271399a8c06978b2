// SPDX-License-Identifier: Apache-2.0
#include "filter/correlate_words.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "base/carver.hpp"
#include "base/simd.hpp"
#include "filter/padded_rows.hpp"
#include "shared/half.hpp"

namespace stoker::correlate {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "filter/correlate_words.ipp"

constexpr int64_t kTaps = 64;  // most weights of both vertical windows

WordLoops loops() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) return words_avx512();
  if (isa() == Isa::AVX2) return words_avx2();
#endif
  return kLoops;
}

// Write a window's weights as words, and return the sum of their absolute values; infinity if they are not whole.
double words_of(const float* weights, int64_t count, int16_t* words) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double w = static_cast<double>(weights[i]);
    if (!(std::abs(w) < 32768) || w != std::floor(w)) return HUGE_VAL;
    words[i] = static_cast<int16_t>(w);
    sum += std::abs(w);
  }
  return sum;
}

}  // namespace

bool sum_in_words(const View& src, const Window (&across)[2], const Window (&down)[2], const View& dst,
                  Scratch& scratch) {
  const int64_t taps = down[0].height + down[1].height;
  if (src.dtype != DType::U8 || (dst.dtype != DType::U8 && dst.dtype != DType::F32)) return false;
  if (taps > kTaps || std::max(across[0].width, across[1].width) > kTaps) return false;
  int16_t wide[2][kTaps], tall[kTaps];
  double most = 0;
  int64_t left = 0, high = 0;
  for (int k = 0; k < 2; ++k) {
    most += words_of(across[k].weights, across[k].width, wide[k]) *
            words_of(down[k].weights, down[k].height, tall + (k ? down[0].height : 0));
    left = std::max(left, across[k].left);
    high = std::max(high, down[k].height);
  }
  if (!(most * 255 <= 32767)) return false;

  const int64_t channels = src.shape[2], count = dst.shape[1] * channels, size = size_of(dst.dtype);
  const PaddedRows source(src, left, left, Border::Reflect101);
  uint8_t *padded = nullptr, *staged = nullptr;
  int16_t *words = nullptr, *kept = nullptr;
  const int64_t row = (count + kWordSlack + 31) / 32 * 32;  // rows begin cache lines
  const auto carve = [&](Carver c) {
    padded = c.take<uint8_t>(static_cast<size_t>(source.values() + kWordSlack));
    words = c.take<int16_t>(static_cast<size_t>(source.values() + 2 * kWordSlack));
    staged = c.take<uint8_t>(static_cast<size_t>(row * size));
    kept = c.take<int16_t>(static_cast<size_t>(2 * high * row + kWordSlack));
    return c.used();
  };
  const size_t bytes = carve(Carver());
  carve(Carver(scratch.get(bytes)));
  const auto slot = [&](int k, int64_t next) { return kept + (k * high + next % high) * row; };
  const WordLoops run = loops();
  const int16_t* rows[kTaps];
  for (int64_t next = 0, y = 0; y < dst.shape[0]; ++y) {
    for (; next < y + high; ++next) {
      source.read(next - high / 2, 0, padded, [](uint8_t*, int64_t) {});
      run.widen(padded, words, source.values());
      for (int k = 0; k < 2; ++k)
        run.across(
            {words + (left - across[k].left) * channels, wide[k], across[k].width, channels, count, slot(k, next)});
    }
    int64_t at = 0;
    for (int k = 0; k < 2; ++k)
      for (int64_t i = 0; i < down[k].height; ++i) rows[at++] = slot(k, y + high / 2 - down[k].top + i);
    if (size == 1) run.down({rows, tall, taps, count, staged, nullptr});
    else run.down({rows, tall, taps, count, nullptr, reinterpret_cast<float*>(staged)});
    scatter_row(staged, dst, y);
  }
  return true;
}

}  // namespace stoker::correlate
