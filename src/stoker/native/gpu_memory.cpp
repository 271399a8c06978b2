// SPDX-License-Identifier: Apache-2.0
#include "gpu_memory.hpp"

#include <algorithm>

#include "tensor.hpp"

namespace stoker::gpu {

namespace {
constexpr size_t kSmallestBlock = size_t{4} << 20;
}

Arena::Arena(std::shared_ptr<Device> device, std::shared_ptr<Account> account, std::shared_ptr<Needed> needed,
             bool mirrored)
    : device_(std::move(device)), account_(std::move(account)), needed_(std::move(needed)), mirrored_(mirrored) {}

Arena::~Arena() {
  const Visit visit(device_.get());
  for (const Block& block : blocks_) drop(block);
}

Arena::Block Arena::make(size_t bytes) {
  device_->enter();
  Block block;
  // A quarter more: batches differ in size, and the next one should fit.
  block.size = device_->apart ? bytes : std::max(kSmallestBlock, aligned(bytes + bytes / 4));
  account_->take(block.size);
  try {
    block.device = device_->allocate(block.size);
    if (mirrored_) block.host = device_->pin(block.size);
  } catch (...) {
    account_->give(block.size);
    if (block.device) device_->free(block.device);
    throw;
  }
  count_allocation(block.size);
  return block;
}

void Arena::drop(const Block& block) noexcept {
  if (block.host) device_->unpin(block.host);
  device_->free(block.device);
  account_->give(block.size);
}

// As large as other batches needed; where there is no memory for that, as this one does.
Arena::Block Arena::make_first(size_t bytes) {
  if (needed_->bytes() > bytes) {
    try {
      return make(needed_->bytes());
    } catch (const std::bad_alloc&) {
    }
  }
  return make(bytes);
}

Arena::Piece Arena::take(size_t bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  bytes = std::max<size_t>(bytes, 1);
  if (!device_->apart) bytes = aligned(bytes);
  if (device_->apart) {
    blocks_.push_back(make(bytes));
  } else if (blocks_.empty() || blocks_.back().size - blocks_.back().used < bytes) {
    size_t total = bytes;
    for (const Block& block : blocks_) total += block.size;  // so that the number of blocks stays small
    blocks_.push_back(blocks_.empty() ? make_first(bytes) : make(total));
  }
  Block& block = blocks_.back();
  const Piece piece{block.host ? block.host + block.used : nullptr, block.device + block.used};
  block.used += bytes;
  used_ += bytes;
  needed_->saw(used_);
  return piece;
}

Address Arena::behind(const uint8_t* host) const {
  std::lock_guard<std::mutex> hold(mutex_);
  for (const Block& block : blocks_)
    if (host >= block.host && host < block.host + block.size) return block.device + static_cast<Address>(host - block.host);
  return 0;
}

void Arena::send() {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (block.used > block.sent) device_->copy_in(block.device + block.sent, block.host + block.sent, block.used - block.sent);
    block.sent = block.used;
  }
}

void Arena::reset() {
  std::lock_guard<std::mutex> hold(mutex_);
  if (blocks_.size() > 1 || device_->apart) {
    device_->enter();
    for (const Block& block : blocks_) drop(block);
    blocks_.clear();
    if (device_->apart) {
      used_ = 0;
      return;
    }
    try {
      blocks_.push_back(make(used_));
    } catch (const std::bad_alloc&) {
      // Not all at once: it is taken piece by piece again, or what asks for it is told.
    }
  }
  for (Block& block : blocks_) block.used = block.sent = 0;
  used_ = 0;
}

std::unique_ptr<Arena> ArenaPool::take() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!free_.empty()) {
      auto arena = std::move(free_.back());
      free_.pop_back();
      return arena;
    }
  }
  return std::make_unique<Arena>(device_, account_, needed_, false);
}

void ArenaPool::give(std::unique_ptr<Arena> arena) {
  arena->reset();
  std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(std::move(arena));
}

size_t Arena::capacity() const {
  std::lock_guard<std::mutex> hold(mutex_);
  size_t total = 0;
  for (const Block& block : blocks_) total += block.size;
  return total;
}

}  // namespace stoker::gpu
