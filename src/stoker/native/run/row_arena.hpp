// SPDX-License-Identifier: Apache-2.0
// Output memory whose rows get their place while they run, because only the kernel that writes a row knows its size.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/block_pool.hpp"

namespace stoker {

// Memory for the rows of one output of one batch, in few blocks. It only grows, so a request never invalidates the
// memory of an earlier one. Threads may call `get` and `has` concurrently.
class RowArena {
 public:
  // Start a batch. `expected`: bytes that all rows will probably take; they share one block. If `row_bytes` is not 0,
  // it is the expected size of every row, and rows that keep to it lie one after the other in their order.
  void open(BlockPool& pool, size_t rows, size_t expected, size_t row_bytes);
  // Return memory for a row.
  uint8_t* get(size_t row, size_t bytes);
  // Return whether memory lies in the arena.
  bool has(const uint8_t* data, size_t bytes) const;
  // Return the bytes that the rows have taken, with gaps for alignment.
  size_t taken() const { return taken_; }
  // Move the blocks to the caller. Call this when no thread uses the arena.
  std::vector<BlockPool::Block> release();
  // Replace all blocks. Call this when no thread uses the arena.
  void replace(BlockPool::Block block);

 private:
  static constexpr size_t kAlign = 64;
  mutable std::mutex mutex_;
  BlockPool* pool_ = nullptr;
  std::vector<BlockPool::Block> blocks_;
  uint8_t* first_ = nullptr;                     // of the first block
  size_t row_bytes_ = 0, used_ = 0, taken_ = 0;  // `used_`: of the last block
};

// Allocator of one row in an arena.
class RowAllocator final : public BufferAllocator {
 public:
  RowAllocator(RowArena& arena, int64_t row) : arena_(arena), row_(static_cast<size_t>(row)) {}
  uint8_t* get(size_t bytes) override { return arena_.get(row_, bytes); }

 private:
  RowArena& arena_;
  const size_t row_;
};

}  // namespace stoker
