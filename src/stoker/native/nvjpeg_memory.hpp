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

  // Why the last request was refused, once, if by the limit.
  std::optional<gpu::LimitReached> refusal();
  uint64_t device_bytes() const;  // in use, or waiting to be

 private:
  struct Block {
    gpu::Address at;
    size_t size;
    uintptr_t stream;
  };
  gpu::Address allocate(size_t bytes);
  void release(const Block& block);  // when its stream has done its work
  void release_waiting();

  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<gpu::Account> account_;
  mutable std::mutex mutex_;
  std::unordered_map<gpu::Address, size_t> used_;
  std::vector<Block> waiting_;  // the oldest first
  std::optional<gpu::LimitReached> refusal_;
};

}  // namespace stoker::nvjpeg
