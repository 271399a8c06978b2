// SPDX-License-Identifier: Apache-2.0
// Conversion of whole arrays between float16 and float32, with the machine's widest kernels.
#pragma once
#include <cstdint>

namespace stoker {

// Rounds half to even, like shared/half.hpp for one number. `n` is the number of elements.
void floats_to_halves(uint16_t* dst, const float* src, int64_t n);
void halves_to_floats(float* dst, const uint16_t* src, int64_t n);

}  // namespace stoker
