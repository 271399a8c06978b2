// SPDX-License-Identifier: Apache-2.0
// Inverse DCT: libjpeg's "islow" with the overflow behaviour of libjpeg-turbo's x86 code, which all common builds use:
// dequantised coefficients and sums of two inputs wrap to 16 bits, the column pass saturates to 16 bits (but wraps if
// rows 1 to 7 of the block are zero), the row pass saturates to 8 bits. Only damaged files reach these limits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::jpeg {

// Transform `count` horizontally adjacent blocks (64 coefficients each, natural order) to 8 rows of samples. `ends[i]`
// is 1 + the last zig-zag position of block i that may be non-zero. The coefficients are zero afterwards, ready for the
// next row of MCUs. Up to 8 samples past the last block's may be written.
using InverseDct = void (*)(int16_t* coefficients, const uint8_t* ends, int count, const int16_t* quantiser,
                            uint8_t* out, ptrdiff_t pitch);
// Return the transform for the current instruction set. `size` is the number of samples per side of a block: 8, or 4, 2
// and 1 in a scaled picture, where each sample is the mean of some of the 8x8 (libjpeg's reduced transforms). At size 1
// a block has one coefficient, the DC.
InverseDct inverse_dct(int size = 8);

}  // namespace stoker::jpeg
