// SPDX-License-Identifier: Apache-2.0
// Vector code of the decoder for 64-bit Arm, which always has NEON.
#pragma once
#if defined(__aarch64__)
#include <cstddef>
#include <cstdint>

#include "jpeg/rows.hpp"

namespace stoker::jpeg {

// InverseDct of 8x8 samples.
void inverse_dct_neon(int16_t* coefficients, const uint8_t* ends, int count, const int16_t* quantiser, uint8_t* out,
                      ptrdiff_t pitch);
const RowKernels& row_kernels_neon();

}  // namespace stoker::jpeg
#endif
