// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/nvjpeg_memory.hpp"

#include <algorithm>

namespace stoker::nvjpeg {

namespace {
// Maximum number of idle blocks per stream: memory that grows step by step leaves idle blocks that are too small to
// be requested again.
constexpr int64_t kWaiting = 4;
// About twice what the driver was observed to take for the engines and everything else on an H200 (228 MB).
constexpr uint64_t kMaxOfDriver = uint64_t{512} << 20;
}  // namespace

Memory::~Memory() {
  const gpu::Visit visit(device_.get(), std::nothrow);
  for (const Block& block : waiting_) used_.emplace(block.at, block.size);
  for (const auto& [at, size] : used_) {
    device_->free(at);
    quota_->release(size);
  }
  quota_->release(driver_);
}

void Memory::note_driver(uint64_t free, uint64_t taken) {
  const uint64_t left = device_->free_bytes(), now = quota_->taken;
  std::lock_guard<std::mutex> hold(mutex_);
  // The difference may have either sign: other programs release memory, too.
  const auto gone = static_cast<int64_t>(free - left), own = static_cast<int64_t>(now - taken);
  if (gone <= own || driver_ >= kMaxOfDriver) return;
  const uint64_t more = std::min(static_cast<uint64_t>(gone - own), kMaxOfDriver - driver_);
  driver_ += more;
  quota_->charge_taken(more);
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
    const Block fitting = *best;
    waiting_.erase(best);
    used_.emplace(fitting.at, fitting.size);
    return fitting.at;
  } catch (...) { return 0; }
}

gpu::Address Memory::allocate(size_t bytes) {
  for (const bool last : {false, true}) {
    try {
      quota_->charge(bytes);
      try {
        const gpu::Address at = device_->allocate(bytes);
        used_.emplace(at, bytes);
        return at;
      } catch (...) {
        quota_->release(bytes);
        throw;
      }
    } catch (const gpu::LimitReached& reached) {
      if (last) refusal_ = reached;
    } catch (const std::bad_alloc&) {
      // The device has no more memory; the idle blocks may suffice.
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
    if (device_->separate_allocations || std::count_if(waiting_.begin(), waiting_.end(), of_stream) > kWaiting) {
      const auto oldest = std::find_if(waiting_.begin(), waiting_.end(), of_stream);
      const Block block = *oldest;
      waiting_.erase(oldest);
      release(block);
    }
    return true;
  } catch (...) { return false; }
}

void Memory::release(const Block& block) {
  device_->finish(block.stream);
  device_->free(block.at);
  quota_->release(block.size);
}

void Memory::release_waiting() {
  for (; !waiting_.empty(); waiting_.pop_back()) release(waiting_.back());
}

uint8_t* Memory::pin(size_t bytes) noexcept {
  try {
    return device_->pin(std::max<size_t>(bytes, 1));
  } catch (...) { return nullptr; }
}

bool Memory::unpin(uint8_t* memory, uintptr_t stream) noexcept {
  try {
    device_->finish(stream);
  } catch (...) { return false; }
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
