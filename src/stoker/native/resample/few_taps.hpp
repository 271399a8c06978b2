// SPDX-License-Identifier: Apache-2.0
// 8-bit resampling with at most four taps in 16-bit arithmetic, for AVX2 and every processor that has it.
//
// A sum of pixels p and weights w with 22 fraction bits is wanted as (sum + 2^21) >> 22. With w = coarse * 2^15 + fine it is
//   (sum p * coarse + (sum p * fine >> 15) + 2^6) >> 7
// without any further rounding. Coarse parts are signed bytes, and their sum fits a word: pmaddubsw multiplies and adds them
// for 16 outputs at a time. Where weights are multiples of 2^15, as in a resampling to twice the size, nothing is left.
// The fine parts of two taps whose weights sum to 2^22 are opposite numbers, so that they weigh the difference of the
// pixels, and one pmulhw gives their sum, shifted. Those of four taps need sums of 32 bits.
#pragma once
#include <cstdint>

#include "resample/kernels.hpp"

namespace stoker::resample {

#if defined(__x86_64__)

// Which forms are faster than those of an instruction set.
enum class Few : uint8_t {
  Any,     // all
  NoSums,  // those without sums of 32 bits
};

// Compute out[i] for i < n from four rows, as Kernels::vertical does. Return false, and write nothing, if there are fewer
// outputs than bytes of a vector, or if the weights do not suit.
bool vertical_few_taps(Few which, const uint8_t* const* rows, const int32_t* weights, uint8_t* out, int64_t n);

// As Kernels::block_room, plan_blocks and horizontal_blocks.
int64_t few_taps_room(int64_t outputs);
bool plan_few_taps(Few which, Packing packing, const RowTaps& taps, int64_t outputs, int64_t readable, uint8_t* room);
void horizontal_few_taps(const uint8_t* room, const uint8_t* const src[kRows], uint8_t* const dst[kRows]);

#endif

}  // namespace stoker::resample
