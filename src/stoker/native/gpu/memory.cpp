// SPDX-License-Identifier: Apache-2.0
#include "gpu/memory.hpp"

#include <algorithm>

#include "base/tensor.hpp"

namespace stoker::gpu {

namespace {
constexpr size_t kSmallestBlock = size_t{2} << 20;
}  // namespace

// ---- DeviceBackingPool ----

DeviceBackingPool::~DeviceBackingPool() {
  const Visit visit(device_.get(), std::nothrow);
  for (const Memory& memory : free_) drop(memory);
}

DeviceBackingPool::Memory DeviceBackingPool::allocate(size_t bytes) {
  device_->enter();
  quota_->charge(bytes);
  try {
    return {device_->allocate(bytes), bytes};
  } catch (...) {
    quota_->release(bytes);
    throw;
  }
}

void DeviceBackingPool::drop(const Memory& memory) noexcept {
  device_->reuse(memory.at, memory.size);
  quota_->release(memory.size);
}

void DeviceBackingPool::drop_largest() {
  const auto largest =
      std::max_element(free_.begin(), free_.end(), [](const Memory& a, const Memory& b) { return a.size < b.size; });
  drop(*largest);
  free_.erase(largest);
}

// Use the smallest block that is large enough. If there is none, a smaller one is freed, so that there are never more
// blocks than batches used at the same time, and eventually all are large enough.
DeviceBackingPool::Memory DeviceBackingPool::take(size_t bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->size >= bytes && (best == free_.end() || it->size < best->size)) best = it;
  if (best != free_.end()) {
    const Memory fitting = *best;
    free_.erase(best);
    return fitting;
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

bool DeviceBackingPool::has(size_t bytes) {
  try {
    release(take(bytes));
    return true;
  } catch (const std::exception&) {  // a failed device is reported by the call that takes memory
    return false;
  }
}

void DeviceBackingPool::release(const Memory& memory) noexcept {
  if (device_->separate_allocations) return drop(memory);
  std::lock_guard<std::mutex> hold(mutex_);
  try {
    free_.push_back(memory);
  } catch (const std::bad_alloc&) { drop(memory); }
}

// ---- Arena ----

Arena::Arena(std::shared_ptr<Device> device, std::shared_ptr<MemoryQuota> quota,
             std::shared_ptr<HighWaterMark> high_water_mark, std::shared_ptr<DeviceBackingPool> backing_pool)
    : device_(std::move(device)),
      quota_(std::move(quota)),
      high_water_mark_(std::move(high_water_mark)),
      backing_pool_(std::move(backing_pool)) {}

Arena::~Arena() {
  const Visit visit(device_.get(), std::nothrow);
  release_device_memory();
  for (const Owned& block : blocks_) drop(*block);
}

// Add a quarter, because batches differ in size and the next one should fit.
size_t Arena::with_slack(size_t bytes) const {
  const size_t more = std::max(kSmallestBlock, aligned(bytes + bytes / 4));
  return quota_->may_overallocate(more) ? more : aligned(bytes);
}

// Allocate a block, with device memory if it is to be `on_device`.
Arena::Owned Arena::make(size_t size, bool on_device) {
  device_->enter();
  auto block = std::make_unique<Block>();
  block->size = size;
  if (backing_pool_) {
    block->host = device_->pin(size);
  } else {
    quota_->charge(size);
    try {
      block->device = device_->allocate(size);
    } catch (...) {
      quota_->release(size);
      throw;
    }
  }
  try {
    if (on_device) attach(*block);
  } catch (...) {
    drop(*block);
    throw;
  }
  count_allocation(size);
  return block;
}

// Return null if there is no memory for the block, or would be none when it is sent.
Arena::Owned Arena::try_to_make(size_t size, bool on_device) {
  try {
    Owned block = make(size, on_device);
    if (!backing_pool_ || on_device || backing_pool_->has(size)) return block;
    drop(*block);
  } catch (const std::bad_alloc&) {}
  return nullptr;
}

void Arena::drop(const Block& block) noexcept {
  if (backing_pool_) return device_->reuse_pinned(block.host, block.size);
  device_->reuse(block.device, block.size);
  quota_->release(block.size);
}

// If there is not enough memory for the whole block, take memory for the used part and close the block.
void Arena::attach(Block& block) {
  if (block.device) return;
  DeviceBackingPool::Memory memory;
  try {
    memory = backing_pool_->take(block.size);
  } catch (const std::bad_alloc&) {
    if (block.end || block.used == 0 || device_->separate_allocations) throw;
    block.close();
    try {
      memory = backing_pool_->take(aligned(block.end));
    } catch (...) {
      block.open();
      throw;
    }
  }
  block.backing_bytes = memory.size;
  block.device.store(memory.at, std::memory_order_release);
}

bool Arena::try_to_attach(Block& block) {
  try {
    attach(block);
    return true;
  } catch (const std::bad_alloc&) { return false; }
}

void Arena::release_device_memory() noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!backing_pool_) return;
  for (const Owned& block : blocks_) {
    if (block->device) backing_pool_->release({block->device, block->backing_bytes});
    block->device = 0;
    block->sent = 0;
  }
}

size_t Arena::used() const {
  size_t total = 0;
  for (const Owned& block : blocks_) total += block->taken();
  return total;
}

// Add a block with space for `bytes`: the first block as large as other batches needed, later ones as large as all
// before, so that there are few; if there is no memory for that, the minimum. Requires the lock.
Arena::Block& Arena::add_block(size_t bytes, bool on_device) {
  size_t wanted = bytes;
  for (const Owned& block : blocks_) wanted += block->size;
  if (blocks_.empty()) wanted = std::max(bytes, high_water_mark_->bytes());
  blocks_.reserve(blocks_.size() + 1);  // nothing may throw once there is a block
  Owned block;
  if (!device_->separate_allocations) {
    if (wanted > bytes) block = try_to_make(with_slack(wanted), on_device);
    if (const size_t size = with_slack(bytes); !block && size > bytes) block = try_to_make(size, on_device);
  }
  if (!block) block = make(bytes, on_device);
  blocks_.push_back(std::move(block));
  Block& added = *blocks_.back();
  if (!device_->separate_allocations) last_.store(&added, std::memory_order_release);
  return added;
}

// Take the piece from the rest of an earlier block. Requires the lock.
bool Arena::take_of_earlier(bool on_device, size_t bytes, Piece* piece) {
  for (const Owned& block : blocks_) {
    size_t at = 0;
    if (on_device && !block->device) continue;
    if (!block->take(bytes, &at)) continue;
    *piece = block->piece(at, block->device);
    return true;
  }
  return false;
}

Arena::Piece Arena::take_from(bool on_device, size_t bytes) {
  bytes = piece_size(bytes, device_->separate_allocations);
  size_t at = 0;
  if (Block* last = last_.load(std::memory_order_acquire)) {
    const Address device = last->device.load(std::memory_order_acquire);
    if ((device || !on_device) && last->take(bytes, &at)) return last->piece(at, device);
  }
  std::lock_guard<std::mutex> hold(mutex_);
  if (Block* last = last_.load(std::memory_order_relaxed))
    if ((!on_device || try_to_attach(*last)) && last->take(bytes, &at)) return last->piece(at, last->device);
  Piece earlier;
  if (!quota_->may_overallocate(bytes) && take_of_earlier(on_device, bytes, &earlier)) return earlier;
  for (;;) {  // other threads may use up a new block before this thread gets its piece
    Block* added = nullptr;
    try {
      added = &add_block(bytes, on_device);
    } catch (const std::bad_alloc&) {
      if (take_of_earlier(on_device, bytes, &earlier)) return earlier;
      throw;
    }
    high_water_mark_->record(used() + bytes);
    if (added->take(bytes, &at)) return added->piece(at, added->device);
  }
}

Arena::Piece Arena::take(size_t bytes) { return take_from(true, bytes); }

uint8_t* Arena::take_host(size_t bytes) { return take_from(false, bytes).host; }

Address Arena::device_address(const uint8_t* host) {
  const auto within = [host](const Block& block, Address device) {
    return device + static_cast<Address>(host - block.host);
  };
  if (const Block* last = last_.load(std::memory_order_acquire)) {
    const Address device = last->device.load(std::memory_order_acquire);
    if (device && last->holds(host)) return within(*last, device);
  }
  std::lock_guard<std::mutex> hold(mutex_);
  for (const Owned& block : blocks_) {
    if (!block->holds(host)) continue;
    attach(*block);
    return within(*block, block->device);
  }
  return 0;
}

void Arena::send(WorkStream work_stream) {
  std::lock_guard<std::mutex> hold(mutex_);
  high_water_mark_->record(used());
  for (const Owned& block : blocks_) {
    if (!block->device) continue;
    const size_t used = block->taken();
    if (used > block->sent)
      device_->send(work_stream, block->device + block->sent, block->host + block->sent, used - block->sent);
    block->sent = used;
  }
}

void Arena::reset() {
  release_device_memory();
  std::lock_guard<std::mutex> hold(mutex_);
  const size_t high_water_mark = used();
  high_water_mark_->record(high_water_mark);
  if (blocks_.size() > 1 || device_->separate_allocations) {
    device_->enter();
    last_ = nullptr;
    for (const Owned& block : blocks_) drop(*block);
    blocks_.clear();
    if (device_->separate_allocations) return;
    // If the whole size is not available, blocks are added one by one again, or the caller gets the error.
    blocks_.reserve(1);
    Owned block = try_to_make(with_slack(high_water_mark), false);
    if (!block) block = try_to_make(aligned(high_water_mark), false);
    if (block) blocks_.push_back(std::move(block));
    last_ = blocks_.empty() ? nullptr : blocks_.back().get();
  }
  for (const Owned& block : blocks_) block->used = block->sent = block->end = 0;
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
  return std::make_unique<Arena>(device_, quota_, high_water_mark_);
}

void ArenaPool::release(std::unique_ptr<Arena> arena) {
  arena->reset();
  std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(std::move(arena));
}

}  // namespace stoker::gpu
