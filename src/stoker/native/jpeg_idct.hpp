// SPDX-License-Identifier: Apache-2.0
// Inverse DCT: libjpeg's "islow" with the overflow behaviour of libjpeg-turbo's x86 code, on which every wheel runs:
// dequantised coefficients and sums of two inputs wrap to 16 bits, the column pass saturates to 16 bits (but wraps
// when rows 1 to 7 of the block are zero), the row pass saturates to 8. Sane files never get there; damaged ones do.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::jpeg {

// Transforms `count` horizontally adjacent blocks (64 coefficients each, natural order) into 8 rows of samples.
// `ends[i]`: 1 + the last zig-zag position of block i that may be non-zero. Leaves the coefficients zero, ready for
// the next row of MCUs. Writes up to 8 samples past the last block's.
using InverseDct = void (*)(int16_t* coefficients, const uint8_t* ends, int count, const int16_t* quantiser,
                            uint8_t* out, ptrdiff_t pitch);
// For the instruction set in force. `size` 8, or 4, 2 and 1: samples per side of a block in a scaled picture, each the
// mean of some of the 8x8 (libjpeg's reduced transforms). At size 1 there is one coefficient per block, the DC.
InverseDct inverse_dct(int size = 8);

}  // namespace stoker::jpeg
