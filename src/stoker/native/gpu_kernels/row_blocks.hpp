// SPDX-License-Identifier: Apache-2.0
// Launches whose thread blocks (CTAs) belong to the rows of a batch, any number of blocks per row.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "shared/row_blocks.hpp"

namespace stoker::gpu {

// Return the number of blocks that process `count` things, `each` per block.
inline uint64_t blocks_for(int64_t count, int64_t each) {
  return count > 0 ? (static_cast<uint64_t>(count) + static_cast<uint64_t>(each) - 1) / static_cast<uint64_t>(each) : 0;
}

// Blocks of one launch: a table with one entry per row that has blocks. Each block of the kernel finds its row there by
// `find_work` (device/row_blocks.cuh).
class RowBlocks {
 public:
  // Add the blocks of a row, or of a part of one: `row` is any number that the kernel understands. Blocks run roughly in
  // the order in which they are added.
  void add(uint32_t row, uint64_t blocks) {
    if (blocks == 0) return;
    if (blocks > std::numeric_limits<uint32_t>::max())
      throw std::length_error("expected at most 2^32 - 1 blocks of a row on a GPU, got " + std::to_string(blocks));
    each_ = row != starts_.size() || (!starts_.empty() && blocks != each_) ? 0 : blocks;
    starts_.push_back({blocks_, row});
    blocks_ += blocks;
  }
  bool empty() const { return blocks_ == 0; }

  // Upload the table, and launch a kernel for all blocks; nothing is done without blocks. The kernel's last three
  // parameters, which are added to those of `launch`, are the table, the number of its entries, and the launch's first
  // block: a grid has at most 2^31 - 1 blocks. Where all rows from 0 on have the same number of blocks, the parameters are
  // that number, 0, and the first block.
  void launch(Batch& batch, Launch launch) const {
    if (empty()) return;
    Address table = each_;
    if (each_ == 0) {
      const size_t bytes = starts_.size() * sizeof(RowStart);
      std::memcpy(batch.upload(bytes, &table), starts_.data(), bytes);
    }
    const int own = launch.arguments;
    launch.arguments = own + 3;
    launch.argument[own] = table;
    launch.argument[own + 1] = each_ ? 0 : starts_.size();
    constexpr uint64_t kGrid = (uint64_t{1} << 31) - 1;
    for (uint64_t first = 0; first < blocks_; first += kGrid) {
      launch.grid[0] = static_cast<uint32_t>(std::min(kGrid, blocks_ - first));
      launch.argument[own + 2] = first;
      batch.launch(launch);
    }
  }

 private:
  std::vector<RowStart> starts_;
  uint64_t blocks_ = 0;
  uint64_t each_ = 0;  // blocks of every row, if the rows are 0, 1, 2 and so on
};

}  // namespace stoker::gpu
