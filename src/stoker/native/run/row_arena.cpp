// SPDX-License-Identifier: Apache-2.0
#include "run/row_arena.hpp"

#include <algorithm>
#include <utility>

namespace stoker {

namespace {

constexpr size_t kLeast = size_t{64} << 10;  // bytes of a further block

}  // namespace

void RowArena::open(BlockPool& pool, size_t rows, size_t expected, size_t row_bytes) {
  blocks_.clear();
  pool_ = &pool;
  row_bytes_ = row_bytes;
  used_ = taken_ = row_bytes * rows;
  expected = std::max(expected, used_);
  if (expected > 0) blocks_.push_back(pool.take(expected));
  first_ = expected > 0 ? blocks_.front().data : nullptr;
}

uint8_t* RowArena::get(size_t row, size_t bytes) {
  if (row_bytes_ > 0 && bytes <= row_bytes_) return first_ + row * row_bytes_;
  std::lock_guard<std::mutex> hold(mutex_);
  const size_t begin = (used_ + kAlign - 1) / kAlign * kAlign;
  if (blocks_.empty() || begin > blocks_.back().capacity || bytes > blocks_.back().capacity - begin) {
    blocks_.push_back(pool_->take(std::max({bytes, taken_ / 4, kLeast})));
    used_ = bytes;
    taken_ += bytes;
    return blocks_.back().data;
  }
  taken_ += begin - used_ + bytes;
  used_ = begin + bytes;
  return blocks_.back().data + begin;
}

bool RowArena::has(const uint8_t* data, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(data);
  std::lock_guard<std::mutex> hold(mutex_);
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const BlockPool::Block& block) {
    const auto begin = reinterpret_cast<uintptr_t>(block.data);
    return at >= begin && at - begin <= block.capacity && bytes <= block.capacity - (at - begin);
  });
}

std::vector<BlockPool::Block> RowArena::release() {
  row_bytes_ = 0;
  return std::exchange(blocks_, {});
}

void RowArena::replace(BlockPool::Block block) {
  blocks_.clear();
  blocks_.push_back(std::move(block));
}

}  // namespace stoker
