// SPDX-License-Identifier: Apache-2.0
#include "gpu_memory.hpp"

#include <algorithm>

#include "tensor.hpp"

namespace stoker::gpu {

namespace {
constexpr size_t kSmallestBlock = size_t{4} << 20;

// Kernels read bytes as the aligned words that they lie in, so that a piece has whole words.
size_t piece_size(size_t bytes, bool apart) {
  return apart ? (std::max<size_t>(bytes, 1) + 3) / 4 * 4 : aligned(std::max<size_t>(bytes, 1));
}
}  // namespace

// ---- Behind ----

Behind::~Behind() {
  const Visit visit(device_.get());
  for (const Memory& memory : free_) drop(memory);
}

Behind::Memory Behind::allocate(size_t bytes) {
  device_->enter();
  account_->take(bytes);
  try {
    return {device_->allocate(bytes), bytes};
  } catch (...) {
    account_->give(bytes);
    throw;
  }
}

void Behind::drop(const Memory& memory) noexcept {
  device_->free(memory.at);
  account_->give(memory.size);
}

void Behind::drop_largest() {
  const auto largest = std::max_element(free_.begin(), free_.end(),
                                        [](const Memory& a, const Memory& b) { return a.size < b.size; });
  drop(*largest);
  free_.erase(largest);
}

// The smallest that is large enough. If none is, one that is too small goes, so that there are never more than batches
// have had at once, and in the end all are large enough.
Behind::Memory Behind::take(size_t bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->size >= bytes && (best == free_.end() || it->size < best->size)) best = it;
  if (best != free_.end()) {
    const Memory found = *best;
    free_.erase(best);
    return found;
  }
  if (!free_.empty()) drop_largest();
  for (;;) {
    try {
      return allocate(bytes);
    } catch (const std::bad_alloc&) {
      if (free_.empty()) throw;
      drop_largest();
    }
  }
}

bool Behind::has(size_t bytes) {
  try {
    give(take(bytes));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Behind::give(const Memory& memory) noexcept {
  if (device_->apart) return drop(memory);
  std::lock_guard<std::mutex> hold(mutex_);
  try {
    free_.push_back(memory);
  } catch (const std::bad_alloc&) {
    drop(memory);
  }
}

// ---- Arena ----

Arena::Arena(std::shared_ptr<Device> device, std::shared_ptr<Account> account, std::shared_ptr<Needed> needed,
             std::shared_ptr<Behind> behind)
    : device_(std::move(device)), account_(std::move(account)), needed_(std::move(needed)),
      behind_(std::move(behind)) {}

Arena::~Arena() {
  const Visit visit(device_.get());
  leave_device();
  for (const Block& block : blocks_) drop(block);
}

Arena::Block Arena::make(size_t bytes) {
  device_->enter();
  Block block;
  // A quarter more: batches differ in size, and the next one should fit.
  block.size = device_->apart ? bytes : std::max(kSmallestBlock, aligned(bytes + bytes / 4));
  if (behind_) {
    block.host = device_->pin(block.size);
  } else {
    account_->take(block.size);
    try {
      block.device = device_->allocate(block.size);
    } catch (...) {
      account_->give(block.size);
      throw;
    }
  }
  count_allocation(block.size);
  return block;
}

void Arena::drop(const Block& block) noexcept {
  if (behind_) return device_->unpin(block.host);
  device_->free(block.device);
  account_->give(block.size);
}

void Arena::attach(Block& block) {
  if (block.device) return;
  const Behind::Memory memory = behind_->take(block.size);
  block.device = memory.at;
  block.behind_bytes = memory.size;
}

void Arena::leave_device() noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!behind_) return;
  for (Block& block : blocks_) {
    if (block.device) behind_->give({block.device, block.behind_bytes});
    block.device = 0;
    block.sent = 0;
  }
}

// As large as other batches needed; where there is no memory for that, as this one does.
Arena::Block Arena::make_first(size_t bytes) {
  if (needed_->bytes() > bytes) {
    try {
      const Block block = make(needed_->bytes());
      if (may_be_sent(block)) return block;
      drop(block);
    } catch (const std::bad_alloc&) {
    }
  }
  return make(bytes);
}

// With room for that many bytes, which are taken.
Arena::Block& Arena::block_for(size_t bytes, bool on_device) {
  if (device_->apart || blocks_.empty() || blocks_.back().size - blocks_.back().used < bytes) {
    size_t total = bytes;
    for (const Block& block : blocks_) total += block.size;  // so that the number of blocks stays small
    Block block = device_->apart ? make(bytes) : blocks_.empty() ? make_first(bytes) : make(total);
    try {
      if (on_device) attach(block);
      blocks_.push_back(block);
    } catch (...) {
      drop(block);
      throw;
    }
  } else if (on_device) {
    attach(blocks_.back());
  }
  Block& block = blocks_.back();
  block.used += bytes;
  used_ += bytes;
  needed_->saw(used_);
  return block;
}

Arena::Piece Arena::take(size_t bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  bytes = piece_size(bytes, device_->apart);
  const Block& block = block_for(bytes, true);
  const size_t at = block.used - bytes;
  return {block.host ? block.host + at : nullptr, block.device + at};
}

uint8_t* Arena::take_host(size_t bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  bytes = piece_size(bytes, device_->apart);
  const Block& block = block_for(bytes, false);
  return block.host + (block.used - bytes);
}

Address Arena::behind(const uint8_t* host) {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (host < block.host || host >= block.host + block.size) continue;
    attach(block);
    return block.device + static_cast<Address>(host - block.host);
  }
  return 0;
}

void Arena::send() {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (!block.device) continue;
    if (block.used > block.sent) device_->copy_in(block.device + block.sent, block.host + block.sent, block.used - block.sent);
    block.sent = block.used;
  }
}

void Arena::reset() {
  leave_device();
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
      const Block block = make(used_);
      if (may_be_sent(block)) blocks_.push_back(block);
      else drop(block);
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
  return std::make_unique<Arena>(device_, account_, needed_);
}

void ArenaPool::give(std::unique_ptr<Arena> arena) {
  arena->reset();
  std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(std::move(arena));
}

}  // namespace stoker::gpu
