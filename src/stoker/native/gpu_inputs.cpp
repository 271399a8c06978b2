// SPDX-License-Identifier: Apache-2.0
#include "gpu_inputs.hpp"

#include <algorithm>
#include <utility>

#include "tensor.hpp"

namespace stoker::gpu {

namespace {

// Several of them are in the caches at the same time; and of smaller ones, issuing the copies would take longer than what
// is gained.
constexpr size_t kBlock = size_t{4} << 20;

}  // namespace

// ---- Locked ----

Locked::~Locked() {
  const Visit visit(device_.get(), std::nothrow);
  for (const Copied& copied : copied_) {
    try {
      device_->await(copied.event);
    } catch (const std::exception&) {
      // It has failed as a whole: it copies no more.
    }
    device_->forget(copied.event);
    for (const Memory& memory : copied.memory) drop(memory);
  }
  for (const Memory& memory : free_) drop(memory);
}

void Locked::drop(const Memory& memory) noexcept {
  device_->unpin(memory.at);
  bytes_ -= memory.size;
}

void Locked::look_for_copied() {
  while (!copied_.empty() && device_->passed(copied_.front().event)) {
    device_->forget(copied_.front().event);
    for (const Memory& memory : copied_.front().memory) put(memory);
    copied_.pop_front();
  }
}

// If none is large enough, one that is too small goes, so that there are never more than were in use at once, and in the
// end all are large enough.
Locked::Memory Locked::take(size_t bytes, bool alike) {
  std::lock_guard<std::mutex> hold(mutex_);
  device_->enter();
  if (alike) least_ = std::max(least_, bytes);
  look_for_copied();
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->size >= bytes && (best == free_.end() || it->size <= best->size)) best = it;
  if (best != free_.end()) {
    const Memory found = *best;
    free_.erase(best);
    return found;
  }
  if (!free_.empty()) {
    drop(free_.back());
    free_.pop_back();
  }
  const Memory made{device_->pin(bytes), bytes};
  bytes_ += bytes;
  count_allocation(bytes);
  return made;
}

void Locked::put(const Memory& memory) noexcept {
  try {
    if (!device_->apart && memory.size >= least_) return free_.push_back(memory);
  } catch (const std::bad_alloc&) {
  }
  drop(memory);
}

void Locked::give(const Memory& memory) noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  try {
    device_->enter();
  } catch (const std::exception&) {
    // It has failed as a whole.
  }
  put(memory);
}

void Locked::give_when_copied(Event event, std::vector<Memory> memory) {
  std::lock_guard<std::mutex> hold(mutex_);
  copied_.push_back({event, std::move(memory)});
}

size_t Locked::bytes() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return bytes_;
}

// ---- Inputs ----

Inputs::~Inputs() {
  const Visit visit(device_.get(), std::nothrow);
  reset();
}

// Sizes are few, so that blocks fit other batches as well.
size_t Inputs::block_size(size_t bytes) const {
  if (device_->apart) return bytes;
  size_t size = kBlock;
  while (size < 2 * bytes) size *= 2;
  if (!alike()) return size;
  const size_t all = needed_->bytes();
  return std::max(size, (all + all / 8 + kBlock - 1) / kBlock * kBlock);
}

Inputs::Block& Inputs::add(size_t bytes) {
  Block block;
  block.host = locked_->take(block_size(bytes), alike());
  block.size = block.host.size;
  block.at = block.host.at;
  try {
    return blocks_.emplace_back(block);
  } catch (...) {
    locked_->give(block.host);
    throw;
  }
}

uint8_t* Inputs::take(size_t bytes) {
  size_t full = 0;
  bool go_ahead = false;
  uint8_t* piece = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    bytes = piece_size(bytes, device_->apart);
    if (device_->apart || blocks_.empty() || blocks_.back().sent || blocks_.back().size - blocks_.back().used < bytes) {
      full = blocks_.size();
      add(bytes);
      go_ahead = full > 0 && may_go_ahead(blocks_[full - 1]);
    }
    Block& block = blocks_.back();
    piece = block.host.at + block.used;
    block.used += bytes;
    ++block.writing;
    needed_->saw(used_ += bytes);
  }
  if (go_ahead) send_block(full - 1);
  return piece;
}

void Inputs::written(const uint8_t* piece) noexcept {
  size_t at = 0;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    at = blocks_.size();
    while (at-- > 0 && !blocks_[at].holds(piece, blocks_[at].at)) {
    }
    if (at >= blocks_.size()) return;
    --blocks_[at].writing;
    if (at + 1 == blocks_.size() || !may_go_ahead(blocks_[at])) return;
  }
  send_block(at);
}

void Inputs::attach(Block& block) {
  if (block.device) return;
  const Behind::Memory memory = behind_->take(block.size);
  block.device = memory.at;
  block.behind_bytes = memory.size;
}

// With the lock.
void Inputs::forget_copied() noexcept {
  if (copied_) device_->forget(*copied_);
  copied_.reset();
}

// The copy is issued without the lock: others read files meanwhile, or ask for addresses. False: what cannot be done now is
// left to `send`, which can say so.
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
  } catch (const std::exception&) {
    good = false;
  }
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
  return blocks != Blocks::Small && !blocks_.empty() && blocks_.back().unsent();
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
    // `send` records one.
  }
}

Address Inputs::behind(const uint8_t* host) {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (!block.holds(host, block.at)) continue;
    attach(block);
    return block.device + static_cast<Address>(host - block.at);
  }
  return 0;
}

void Inputs::send(Lane lane) {
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
  device_->await_on(lane, *copied_);
  followed_ = true;
}

void Inputs::leave_host() {
  if (device_->apart) return;
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<Locked::Memory> left;
  for (const Block& block : blocks_)
    if (block.sent && block.host.at) left.push_back(block.host);
  if (left.empty() || !copied_) return;
  locked_->give_when_copied(*copied_, std::move(left));
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
    block.host = locked_->take(block.size);
    block.at = block.host.at;
    fetched.push_back(&block);
  }
  if (fetched.empty()) return;
  const Lane lane = device_->next_lane();
  try {
    for (const Block* block : fetched) device_->copy_out(lane, block->at, block->device, block->used);
    wait_and_forget(*device_, device_->record(lane));
  } catch (const std::exception&) {
    device_->drain(lane);  // their memory is others' after this
    throw;
  }
}

uint8_t* Inputs::now_at(uint8_t* host) const {
  for (const Block& block : blocks_)
    if (block.holds(host, block.before)) return block.at + (host - block.before);
  return host;
}

void Inputs::finish() noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  for (Block& block : blocks_) {
    if (block.host.at) locked_->give(block.host);
    if (block.device) behind_->give({block.device, block.behind_bytes});
  }
  blocks_.clear();
  used_ = 0;
  forget_copied();
  copies_ = 0;
  followed_ = true;
}

void Inputs::reset() noexcept {
  if (!followed_) device_->drain(0);  // copies that no work waits for go to memory that will be others'
  finish();
}

}  // namespace stoker::gpu
