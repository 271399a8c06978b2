// SPDX-License-Identifier: Apache-2.0
// Search for the row of a thread block (CTA) in the table that gpu_kernels/row_blocks.hpp uploads.
#pragma once
#include "shared/device.cuh"
#include "shared/row_blocks.hpp"

namespace stoker::gpu {

// Return the last of `count` entries that begins at `block` or before. A warp compares 32 entries at a time, so that a
// thousand rows take two steps. All lanes of the warp must take part.
STOKER_DEVICE uint32_t find_row(const RowStart* starts, uint32_t count, uint64_t block) {
  const uint32_t lane = thread_index() % kWarp;
  uint32_t low = 0;
  while (count > 1) {
    const uint32_t step = (count + kWarp - 1) / kWarp, at = lane * step;
    const uint32_t before = ballot(at < count && starts[low + at].block <= block);
    // The first entry always begins at or before the block.
    const uint32_t skipped = (bits_set(before) - 1) * step;
    low += skipped;
    count = count - skipped < step ? count - skipped : step;
  }
  return low;
}

// Return this block's row and number, from the last three parameters of its kernel: the table's address, the number of
// its entries, and the launch's first block. With 0 entries the first parameter is the number of blocks of every row, and
// nothing is read. The result is in shared memory, so that it takes no registers. A kernel calls this once, and all threads
// of the block must take part.
STOKER_DEVICE const RowBlock& find_work(uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(RowBlock, work);
  const uint64_t block = first + block_index();
  if (count == 0) {
    if (thread_index() == 0) {
      const uint64_t row =
          (block | starts) >> 32 ? block / starts : static_cast<uint32_t>(block) / static_cast<uint32_t>(starts);
      work = {static_cast<uint32_t>(row), static_cast<uint32_t>(block - row * starts)};
    }
  } else if (thread_index() < kWarp) {
    const auto* table = reinterpret_cast<const RowStart*>(starts);
    const RowStart start = table[find_row(table, static_cast<uint32_t>(count), block)];
    if (thread_index() == 0) work = {static_cast<uint32_t>(start.row), static_cast<uint32_t>(block - start.block)};
  }
  block_barrier();
  return work;
}

}  // namespace stoker::gpu
