// SPDX-License-Identifier: Apache-2.0
// What nvJPEG works in, as it asks for it: the device's memory counts as the pipeline's and is within its limit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpu_memory.hpp"

namespace stoker::nvjpeg {

// Requests and returns are in the order of a stream: what was given back on one waits there for its next request, and no
// work has to end before. All calls may come from any thread that has entered the device, and none throws.
class Memory {
 public:
  Memory(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::Account> account)
      : device_(std::move(device)), account_(std::move(account)) {}
  ~Memory();  // nobody works in it
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  gpu::Address take(size_t bytes, uintptr_t stream) noexcept;  // 0: there is none, see `refusal`
  bool give(gpu::Address memory, uintptr_t stream) noexcept;   // false: it is not of this memory
  // Page-locked memory of the host, which has no limit. The host writes there at once, so it is not used again.
  uint8_t* pin(size_t bytes) noexcept;
  bool unpin(uint8_t* memory, uintptr_t stream) noexcept;

  // Does what makes the driver take memory for the library, which asks nobody for it: what the device has less of then,
  // beside what the pipeline took meanwhile, is counted too. Others may take some at the same time, so no more than
  // kMostOfDriver is put down to it. Throws gpu::LimitReached after the work, whose effects stay.
  template <class Work>
  auto watched(Work&& work) {
    const uint64_t free = device_->free_bytes(), taken = account_->taken;
    const auto result = work();
    note_driver(free, taken);
    return result;
  }

  // Throws gpu::LimitReached where the driver has taken more than there may be.
  void require_within_limit() { account_->note(0); }

  // Why the last request was refused, once, if by the limit.
  std::optional<gpu::LimitReached> refusal();
  uint64_t device_bytes() const;  // in use, or waiting to be
  uint64_t driver_bytes() const;  // that the driver took

 private:
  struct Block {
    gpu::Address at;
    size_t size;
    uintptr_t stream;
  };
  gpu::Address allocate(size_t bytes);
  void release(const Block& block);  // when its stream has done its work
  void release_waiting();
  void note_driver(uint64_t free, uint64_t taken);

  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<gpu::Account> account_;
  mutable std::mutex mutex_;
  std::unordered_map<gpu::Address, size_t> used_;
  std::vector<Block> waiting_;  // the oldest first
  std::optional<gpu::LimitReached> refusal_;
  uint64_t driver_ = 0;
};

}  // namespace stoker::nvjpeg
