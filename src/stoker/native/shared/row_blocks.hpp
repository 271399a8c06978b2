// SPDX-License-Identifier: Apache-2.0
// Division of a launch's thread blocks (CTAs) among rows: the blocks of the first row, then those of the second, and so
// on. The host uploads one RowStart per row that has blocks (gpu_kernels/row_blocks.hpp), and each block searches them
// for its row (device/row_blocks.cuh). Where all rows from 0 on have the same number of blocks, a division finds the row.
#pragma once
#include <cstdint>

namespace stoker::gpu {

// First block of a row. The first entry of a table begins with block 0; entries are sorted by their blocks.
struct RowStart {
  uint64_t block, row;
};

// Row of a block, and the block's number among the row's blocks.
struct RowBlock {
  uint32_t row, number;
};

}  // namespace stoker::gpu
