// SPDX-License-Identifier: Apache-2.0
#include "gpu/inputs.hpp"

#include <algorithm>
#include <utility>

#include "base/tensor.hpp"

namespace stoker::gpu {

namespace {

// Block size. Several blocks fit into the caches together; for smaller blocks, issuing the copies would take longer
// than the caches save.
constexpr size_t kBlock = size_t{4} << 20;

}  // namespace

// ---- PinnedPool ----

PinnedPool::~PinnedPool() {
  const Visit visit(device_.get(), std::nothrow);
  for (const Copied& copied : copied_) {
    try {
      device_->await(copied.event);
    } catch (const std::exception&) {
      // The device has failed as a whole, so it copies nothing any more.
    }
    device_->forget(copied.event);
    for (const Memory& memory : copied.memory) drop(memory);
  }
  for (const Memory& memory : free_) drop(memory);
}

void PinnedPool::drop(const Memory& memory) noexcept {
  device_->reuse_pinned(memory.at, memory.size);
  bytes_ -= memory.size;
}

void PinnedPool::collect_copied() {
  while (!copied_.empty() && device_->passed(copied_.front().event)) {
    device_->forget(copied_.front().event);
    for (const Memory& memory : copied_.front().memory) put(memory);
    copied_.pop_front();
  }
}

// If no block is large enough, a smaller one is freed, so that there are never more blocks than were in use at the same
// time, and eventually all are large enough.
PinnedPool::Memory PinnedPool::take(size_t bytes, bool alike) {
  std::lock_guard<std::mutex> hold(mutex_);
  device_->enter();
  if (alike) least_ = std::max(least_, bytes);
  collect_copied();
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->size >= bytes && (best == free_.end() || it->size <= best->size)) best = it;
  if (best != free_.end()) {
    const Memory fitting = *best;
    free_.erase(best);
    return fitting;
  }
  if (!free_.empty()) {
    drop(free_.back());
    free_.pop_back();
  }
  const Memory pinned{device_->pin(bytes), bytes};
  bytes_ += bytes;
  count_allocation(bytes);
  return pinned;
}

void PinnedPool::put(const Memory& memory) noexcept {
  try {
    if (!device_->separate_allocations && memory.size >= least_) return free_.push_back(memory);
  } catch (const std::bad_alloc&) {}
  drop(memory);
}

void PinnedPool::release(const Memory& memory) noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  try {
    device_->enter();
  } catch (const std::exception&) {
    // The device has failed as a whole.
  }
  put(memory);
}

void PinnedPool::release_when_copied(Event event, std::vector<Memory> memory) {
  std::lock_guard<std::mutex> hold(mutex_);
  copied_.push_back({event, std::move(memory)});
}

size_t PinnedPool::bytes() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return bytes_;
}

// ---- Inputs ----

Inputs::~Inputs() {
  const Visit visit(device_.get(), std::nothrow);
  reset();
}

// There are few block sizes, so that blocks fit other batches, too.
size_t Inputs::block_size(size_t bytes) const {
  if (device_->separate_allocations) return bytes;
  size_t size = kBlock;
  while (size < 2 * bytes) size *= 2;
  if (!has_equal_blocks()) return size;
  const size_t all = high_water_mark_->bytes();
  return std::max(size, (all + all / 8 + kBlock - 1) / kBlock * kBlock);
}

Inputs::Block& Inputs::add(size_t bytes) {
  Block block;
  block.host = pinned_pool_->take(block_size(bytes), has_equal_blocks());
  block.size = block.host.size;
  block.at = block.host.at;
  try {
    return blocks_.emplace_back(block);
  } catch (...) {
    pinned_pool_->release(block.host);
    throw;
  }
}

uint8_t* Inputs::take(size_t bytes) {
  size_t full = 0;
  bool go_ahead = false;
  uint8_t* piece = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    bytes = piece_size(bytes, device_->separate_allocations);
    if (device_->separate_allocations || blocks_.empty() || blocks_.back().sent ||
        blocks_.back().size - blocks_.back().used < bytes) {
      full = blocks_.size();
      add(bytes);
      go_ahead = full > 0 && may_go_ahead(blocks_[full - 1]);
    }
    Block& block = blocks_.back();
    piece = block.host.at + block.used;
    block.used += bytes;
    ++block.writing;
    high_water_mark_->record(used_ += bytes);
  }
  if (go_ahead) send_block(full - 1);
  return piece;
}

void Inputs::written(const uint8_t* piece) noexcept {
  size_t at = 0;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    at = blocks_.size();
    while (at-- > 0 && !blocks_[at].holds(piece, blocks_[at].at)) {}
    if (at >= blocks_.size()) return;
    --blocks_[at].writing;
    if (at + 1 == blocks_.size() || !may_go_ahead(blocks_[at])) return;
  }
  send_block(at);
}

void Inputs::attach(Block& block) {
  if (block.device) return;
  const DeviceBackingPool::Memory memory = backing_pool_->take(block.size);
  block.device = memory.at;
  block.backing_bytes = memory.size;
}

// Requires the lock.
void Inputs::forget_copied() noexcept {
  if (copied_) device_->forget(*copied_);
  copied_.reset();
}

// The copy is issued without the lock, so that other threads can read files or ask for addresses. Return false if it
// cannot be issued now; then it is left to `send`, which can report the reason.
bool Inputs::send_block(size_t index) noexcept {
  Block* block = nullptr;
  bool good = true;
  try {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (!blocks_[index].unsent()) return true;
      attach(blocks_[index]);
      block = &blocks_[index];
      block->sent = true;
    }
    device_->enter();
    device_->copy_in(block->device, block->host.at, block->used);
  } catch (const std::exception&) { good = false; }
  std::lock_guard<std::mutex> hold(mutex_);
  if (block) block->sent = good;
  if (block && good) {
    ++copies_;
    followed_ = false;
    forget_copied();
  }
  return good;
}

bool Inputs::may_send_early() {
  std::lock_guard<std::mutex> hold(mutex_);
  return block_policy != BlockPolicy::Small && !blocks_.empty() && blocks_.back().unsent();
}

void Inputs::send_early() noexcept {
  size_t count = 0;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    count = blocks_.size();
  }
  for (size_t i = 0; i < count; ++i)
    if (!send_block(i)) return;
  uint64_t copies = 0;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    copies = copies_;
  }
  try {
    const Event event = device_->record_copies();
    std::lock_guard<std::mutex> hold(mutex_);
    if (copies == copies_ && !copied_) copied_ = event;
    else device_->forget(event);
  } catch (const std::exception&) {
    // `send` records another event.
  }
}

Address Inputs::device_address(const uint8_t* host) {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (!block.holds(host, block.at)) continue;
    attach(block);
    return block.device + static_cast<Address>(host - block.at);
  }
  return 0;
}

void Inputs::send(WorkStream work_stream) {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (!block.device || block.sent) continue;
    forget_copied();
    followed_ = false;
    device_->copy_in(block.device, block.host.at, block.used);
    block.sent = true;
  }
  if (followed_) return;
  if (!copied_) copied_ = device_->record_copies();
  device_->await_on(work_stream, *copied_);
  followed_ = true;
}

void Inputs::release_host_memory() {
  if (device_->separate_allocations) return;
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<PinnedPool::Memory> left;
  for (const Block& block : blocks_)
    if (block.sent && block.host.at) left.push_back(block.host);
  if (left.empty() || !copied_) return;
  pinned_pool_->release_when_copied(*copied_, std::move(left));
  copied_.reset();
  for (Block& block : blocks_)
    if (block.sent) block.host = {};
}

void Inputs::fetch() {
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<Block*> fetched;
  for (Block& block : blocks_) {
    block.before = block.at;
    if (block.host.at) continue;
    block.host = pinned_pool_->take(block.size);
    block.at = block.host.at;
    fetched.push_back(&block);
  }
  if (fetched.empty()) return;
  const WorkStream work_stream = device_->next_work_stream();
  try {
    for (const Block* block : fetched) device_->copy_out(work_stream, block->at, block->device, block->used);
    wait_and_forget(*device_, device_->record(work_stream));
  } catch (const std::exception&) {
    device_->drain(work_stream);  // their memory is reused after this
    throw;
  }
}

uint8_t* Inputs::current_address(uint8_t* host) const {
  for (const Block& block : blocks_)
    if (block.holds(host, block.before)) return block.at + (host - block.before);
  return host;
}

void Inputs::finish() noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (block.host.at) pinned_pool_->release(block.host);
    if (block.device) backing_pool_->release({block.device, block.backing_bytes});
  }
  blocks_.clear();
  used_ = 0;
  forget_copied();
  copies_ = 0;
  followed_ = true;
}

void Inputs::reset() noexcept {
  // Copies without work that waits for them still write to memory that will be reused.
  if (!followed_) device_->drain(0);
  finish();
}

}  // namespace stoker::gpu
