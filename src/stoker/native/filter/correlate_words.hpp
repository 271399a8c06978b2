// SPDX-License-Identifier: Apache-2.0
// Correlations of bytes whose sums fit into words of 16 bits, so that float32 would be exact as well.
#pragma once
#include "filter/correlate.hpp"

namespace stoker::correlate {

// Compute correlate_sum() in words. Return false, with dst untouched, unless the image has bytes, the output bytes or
// float32, all weights are whole, and no sum of any of their products with bytes can leave 16 bits.
bool sum_in_words(const View& src, const Window (&across)[2], const Window (&down)[2], const View& dst,
                  Scratch& scratch);

// Loops over rows of words. Inputs may be read, and outputs written, up to kWordSlack elements beyond their end.
constexpr int64_t kWordSlack = 64;

struct WordRow {
  const int16_t* from;
  const int16_t* weights;
  int64_t taps, step, count;
  int16_t* out;
};

struct WordColumns {
  const int16_t* const* from;
  const int16_t* weights;
  int64_t taps, count;
  uint8_t* bytes;  // one of the two outputs
  float* floats;
};

struct WordLoops {
  void (*widen)(const uint8_t* from, int16_t* to, int64_t n);
  void (*across)(const WordRow& row);
  void (*down)(const WordColumns& columns);
};

#if defined(__x86_64__)
WordLoops words_avx2();
WordLoops words_avx512();
#endif

}  // namespace stoker::correlate
