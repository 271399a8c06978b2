// SPDX-License-Identifier: Apache-2.0
// Memory allocator for nvJPEG: the device memory counts as the pipeline's and stays within its limit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpu/memory.hpp"

namespace stoker::nvjpeg {

// Stream-ordered allocator: a block that was released on a stream is reused by the next request on that stream, without
// waiting for work to end. Thread-safe for threads that have entered the device; no function throws except where noted.
class Memory {
 public:
  Memory(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota)
      : device_(std::move(device)), quota_(std::move(quota)) {}
  ~Memory();  // no work may use the memory
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  gpu::Address take(size_t bytes, uintptr_t stream) noexcept;  // 0: there is none, see `refusal`
  bool give(gpu::Address memory, uintptr_t stream) noexcept;   // false: it is not from this allocator
  // Page-locked host memory, without a limit. It is not reused, because the host would write to it immediately.
  uint8_t* pin(size_t bytes) noexcept;
  bool unpin(uint8_t* memory, uintptr_t stream) noexcept;

  // Run work for which the driver allocates memory by itself. The decrease of the device's free memory, less what the
  // pipeline took at the same time, is added to the quota. Other programs may allocate concurrently, so at most
  // kMaxOfDriver is added. Throw gpu::LimitReached after the work, whose effects stay.
  template <class Work>
  auto watched(Work&& work) {
    const uint64_t free = device_->free_bytes(), taken = quota_->taken;
    const auto result = work();
    note_driver(free, taken);
    return result;
  }

  // Throw gpu::LimitReached if the driver has exceeded the limit.
  void require_within_limit() { quota_->charge_taken(0); }

  // Return the reason for the last refusal, once, if the limit was the reason.
  std::optional<gpu::LimitReached> refusal();
  uint64_t device_bytes() const;  // in use or idle
  uint64_t driver_bytes() const;  // taken by the driver

 private:
  struct Block {
    gpu::Address at;
    size_t size;
    uintptr_t stream;
  };
  gpu::Address allocate(size_t bytes);
  void release(const Block& block);  // after its stream has finished its work
  void release_waiting();
  void note_driver(uint64_t free, uint64_t taken);

  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<gpu::MemoryQuota> quota_;
  mutable std::mutex mutex_;
  std::unordered_map<gpu::Address, size_t> used_;
  std::vector<Block> waiting_;  // idle blocks, the oldest first
  std::optional<gpu::LimitReached> refusal_;
  uint64_t driver_ = 0;
};

}  // namespace stoker::nvjpeg
