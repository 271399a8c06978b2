// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows of float32: the inner loops of correlations.
#pragma once
#include <cstdint>

namespace stoker::correlate {

// Loops read and write whole tiles of this many values, so that rows have room for one more.
constexpr int64_t kTile = 64;

// Value of the window: the row of its sources, as floats, and its weight.
struct Tap {
  const float* from;
  float weight;
};

// Output row: out[x] is the sum over all taps, in their order, of from[x] * weight. Sums start at +0; products and sums
// are rounded.
struct Sum {
  const Tap* taps;
  int64_t tap_count;
  int64_t count;  // values of the output row
  float* out;
};

// Adjacent output rows of a vertical window: row r is the sum of rows[r + i][x] * weights[i] over i < height.
constexpr int kRowsTogether = 4;
struct SumRows {
  const float* const* rows;  // height + kRowsTogether - 1
  const float* weights;
  int64_t height;
  int64_t count;
  float* out[kRowsTogether];
};

struct TapSums {
  void (*row)(const Sum& sum);
  void (*rows)(const SumRows& rows);
};

#if defined(__x86_64__)
TapSums tap_sums_avx2();
TapSums tap_sums_avx512();
#endif

}  // namespace stoker::correlate
