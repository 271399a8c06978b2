// SPDX-License-Identifier: Apache-2.0
#include "nvjpeg_memory.hpp"

#include <algorithm>

namespace stoker::nvjpeg {

namespace {
// So many blocks wait per stream: what grows step by step leaves more behind, which nobody asks for again.
constexpr int64_t kWaiting = 4;
// About twice what the driver was seen to take for the engines, and all else, on an H200 (228 MB).
constexpr uint64_t kMostOfDriver = uint64_t{512} << 20;
}  // namespace

Memory::~Memory() {
  const gpu::Visit visit(device_.get(), std::nothrow);
  for (const Block& block : waiting_) used_.emplace(block.at, block.size);
  for (const auto& [at, size] : used_) {
    device_->free(at);
    account_->give(size);
  }
  account_->give(driver_);
}

void Memory::note_driver(uint64_t free, uint64_t taken) {
  const uint64_t left = device_->free_bytes(), now = account_->taken;
  std::lock_guard<std::mutex> hold(mutex_);
  // In both directions: others, too, give memory back.
  const auto gone = static_cast<int64_t>(free - left), own = static_cast<int64_t>(now - taken);
  if (gone <= own || driver_ >= kMostOfDriver) return;
  const uint64_t more = std::min(static_cast<uint64_t>(gone - own), kMostOfDriver - driver_);
  driver_ += more;
  account_->note(more);
}

uint64_t Memory::driver_bytes() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return driver_;
}

gpu::Address Memory::take(size_t bytes, uintptr_t stream) noexcept {
  try {
    bytes = gpu::aligned(std::max<size_t>(bytes, 1));
    std::lock_guard<std::mutex> hold(mutex_);
    auto best = waiting_.end();
    for (auto block = waiting_.begin(); block != waiting_.end(); ++block) {
      const bool fits = block->stream == stream && block->size >= bytes && block->size / 2 <= bytes;
      if (fits && (best == waiting_.end() || block->size < best->size)) best = block;
    }
    if (best == waiting_.end()) return allocate(bytes);
    const Block found = *best;
    waiting_.erase(best);
    used_.emplace(found.at, found.size);
    return found.at;
  } catch (...) {
    return 0;
  }
}

gpu::Address Memory::allocate(size_t bytes) {
  for (const bool last : {false, true}) {
    try {
      account_->take(bytes);
      try {
        const gpu::Address at = device_->allocate(bytes);
        used_.emplace(at, bytes);
        return at;
      } catch (...) {
        account_->give(bytes);
        throw;
      }
    } catch (const gpu::LimitReached& reached) {
      if (last) refusal_ = reached;
    } catch (const std::bad_alloc&) {
      // The device has no more; what waits may be enough.
    }
    if (!last) release_waiting();
  }
  return 0;
}

bool Memory::give(gpu::Address memory, uintptr_t stream) noexcept {
  try {
    std::lock_guard<std::mutex> hold(mutex_);
    const auto found = used_.find(memory);
    if (found == used_.end()) return false;
    waiting_.push_back({memory, found->second, stream});
    used_.erase(found);
    const auto of_stream = [&](const Block& block) { return block.stream == stream; };
    if (device_->apart || std::count_if(waiting_.begin(), waiting_.end(), of_stream) > kWaiting) {
      const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), of_stream);
      const Block block = *oldest;
      waiting_.erase(oldest);
      release(block);
    }
    return true;
  } catch (...) {
    return false;
  }
}

void Memory::release(const Block& block) {
  device_->finish(block.stream);
  device_->free(block.at);
  account_->give(block.size);
}

void Memory::release_waiting() {
  for (; !waiting_.empty(); waiting_.pop_back()) release(waiting_.back());
}

uint8_t* Memory::pin(size_t bytes) noexcept {
  try {
    return device_->pin(std::max<size_t>(bytes, 1));
  } catch (...) {
    return nullptr;
  }
}

bool Memory::unpin(uint8_t* memory, uintptr_t stream) noexcept {
  try {
    device_->finish(stream);
  } catch (...) {
    return false;
  }
  device_->unpin(memory);
  return true;
}

std::optional<gpu::LimitReached> Memory::refusal() {
  std::lock_guard<std::mutex> hold(mutex_);
  auto found = std::move(refusal_);
  refusal_.reset();
  return found;
}

uint64_t Memory::device_bytes() const {
  std::lock_guard<std::mutex> hold(mutex_);
  uint64_t bytes = 0;
  for (const auto& [at, size] : used_) bytes += size;
  for (const Block& block : waiting_) bytes += block.size;
  return bytes;
}

}  // namespace stoker::nvjpeg
