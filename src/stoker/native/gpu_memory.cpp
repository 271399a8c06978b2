// SPDX-License-Identifier: Apache-2.0
#include "gpu_memory.hpp"

#include <algorithm>

#include "tensor.hpp"

namespace stoker::gpu {

namespace {
constexpr size_t kSmallestBlock = size_t{2} << 20;
}  // namespace

// ---- Behind ----

Behind::~Behind() {
  const Visit visit(device_.get(), std::nothrow);
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
  } catch (const std::exception&) {  // a device that has failed says so to who takes memory
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
  const Visit visit(device_.get(), std::nothrow);
  leave_device();
  for (const Owned& block : blocks_) drop(*block);
}

// A quarter more: batches differ in size, and the next one should fit.
size_t Arena::with_slack(size_t bytes) const {
  const size_t more = std::max(kSmallestBlock, aligned(bytes + bytes / 4));
  return account_->generous(more) ? more : aligned(bytes);
}

// Of so many bytes, and with the device's memory behind it if it is to be `on_device`.
Arena::Owned Arena::make(size_t size, bool on_device) {
  device_->enter();
  auto block = std::make_unique<Block>();
  block->size = size;
  if (behind_) {
    block->host = device_->pin(size);
  } else {
    account_->take(size);
    try {
      block->device = device_->allocate(size);
    } catch (...) {
      account_->give(size);
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

// Null: there is no memory for it, or would not be when it is to be sent.
Arena::Owned Arena::try_to_make(size_t size, bool on_device) {
  try {
    Owned block = make(size, on_device);
    if (!behind_ || on_device || behind_->has(size)) return block;
    drop(*block);
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

void Arena::drop(const Block& block) noexcept {
  if (behind_) return device_->unpin(block.host);
  device_->free(block.device);
  account_->give(block.size);
}

void Arena::attach(Block& block) {
  if (block.device) return;
  const Behind::Memory memory = behind_->take(block.size);
  block.behind_bytes = memory.size;
  block.device.store(memory.at, std::memory_order_release);
}

void Arena::leave_device() noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!behind_) return;
  for (const Owned& block : blocks_) {
    if (block->device) behind_->give({block->device, block->behind_bytes});
    block->device = 0;
    block->sent = 0;
  }
}

size_t Arena::used() const {
  size_t total = 0;
  for (const Owned& block : blocks_) total += block->used;
  return total;
}

// With room for that many bytes: the first block as large as other batches needed, later ones as large as all before, so
// that their number stays small; where there is no memory for that, as large as it must be. Called with the lock.
Arena::Block& Arena::add_block(size_t bytes, bool on_device) {
  size_t wanted = bytes;
  for (const Owned& block : blocks_) wanted += block->size;
  if (blocks_.empty()) wanted = std::max(bytes, needed_->bytes());
  blocks_.reserve(blocks_.size() + 1);  // so that nothing throws once there is a block
  Owned block;
  if (!device_->apart) {
    if (wanted > bytes) block = try_to_make(with_slack(wanted), on_device);
    if (const size_t size = with_slack(bytes); !block && size > bytes) block = try_to_make(size, on_device);
  }
  if (!block) block = make(bytes, on_device);
  blocks_.push_back(std::move(block));
  Block& added = *blocks_.back();
  if (!device_->apart) last_.store(&added, std::memory_order_release);
  return added;
}

Arena::Piece Arena::take_from(bool on_device, size_t bytes) {
  bytes = piece_size(bytes, device_->apart);
  size_t at = 0;
  const auto piece = [&](const Block& block, Address device) {
    return Piece{block.host ? block.host + at : nullptr, device ? device + at : 0};
  };
  if (Block* last = last_.load(std::memory_order_acquire)) {
    const Address device = last->device.load(std::memory_order_acquire);
    if ((device || !on_device) && last->take(bytes, &at)) return piece(*last, device);
  }
  std::lock_guard<std::mutex> hold(mutex_);
  if (Block* last = last_.load(std::memory_order_relaxed)) {
    if (on_device) attach(*last);
    if (last->take(bytes, &at)) return piece(*last, last->device);
  }
  if (!device_->apart && !account_->generous(bytes))  // what earlier blocks have left
    for (const Owned& block : blocks_)
      if ((block->device || !on_device) && block->take(bytes, &at)) return piece(*block, block->device);
  for (;;) {  // others may take what a new block has before it is this thread's turn
    Block& added = add_block(bytes, on_device);
    needed_->saw(used() + bytes);
    if (added.take(bytes, &at)) return piece(added, added.device);
  }
}

Arena::Piece Arena::take(size_t bytes) { return take_from(true, bytes); }

uint8_t* Arena::take_host(size_t bytes) { return take_from(false, bytes).host; }

Address Arena::behind(const uint8_t* host) {
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

void Arena::send(Lane lane) {
  std::lock_guard<std::mutex> hold(mutex_);
  needed_->saw(used());
  for (const Owned& block : blocks_) {
    if (!block->device) continue;
    const size_t used = block->used;
    if (used > block->sent)
      device_->send(lane, block->device + block->sent, block->host + block->sent, used - block->sent);
    block->sent = used;
  }
}

void Arena::reset() {
  leave_device();
  std::lock_guard<std::mutex> hold(mutex_);
  const size_t needed = used();
  needed_->saw(needed);
  if (blocks_.size() > 1 || device_->apart) {
    device_->enter();
    last_ = nullptr;
    for (const Owned& block : blocks_) drop(*block);
    blocks_.clear();
    if (device_->apart) return;
    // If it is not to be had at once, it is taken piece by piece again, or what asks for it is told.
    blocks_.reserve(1);
    Owned block = try_to_make(with_slack(needed), false);
    if (!block) block = try_to_make(aligned(needed), false);
    if (block) blocks_.push_back(std::move(block));
    last_ = blocks_.empty() ? nullptr : blocks_.back().get();
  }
  for (const Owned& block : blocks_) block->used = 0, block->sent = 0;
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
