// SPDX-License-Identifier: Apache-2.0
// Block smoothing: libjpeg-turbo's estimates of low frequencies that the scans of a progressive file have not reached.
#pragma once
#include <cstdint>

namespace stoker::jpeg {

constexpr int kEstimated = 9;  // zig-zag positions 1 to 9 are estimated
constexpr int kReach = 2;      // blocks in each direction whose DCs an estimate uses

// DCs of a block and of its neighbours: five rows of five. The block's own is dc[2][2].
struct DcNeighbors {
  int32_t dc[2 * kReach + 1][2 * kReach + 1];
};

// Replace the coefficients of a block that are zero and not exactly known by estimates; without any AC, also the DC.
// `missing` has the number of missing low bits of each zig-zag position (-1: all), `block` has 64 coefficients in
// natural order, or the DC alone if `only_dc`. `end` is 1 + the last zig-zag position that may be non-zero.
void smooth_block(const DcNeighbors& neighbors, const int8_t* missing, const int16_t* quantiser, bool only_dc,
                  int16_t* block, uint8_t& end);

// Rows of blocks, from two above to two below row `row`, that libjpeg-turbo uses: row `row` is number `block_row` of
// `block_rows` in MCU row `mcu_row` of `mcu_rows`. At the edges of the picture, rows repeat.
struct RowsAround {
  int at[2 * kReach + 1];
};
RowsAround rows_around(int row, int block_row, int block_rows, int mcu_row, int mcu_rows);

}  // namespace stoker::jpeg
