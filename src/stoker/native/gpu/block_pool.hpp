// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/scratch.hpp"
#include "gpu/device_resources.hpp"

namespace stoker {

// Allocate memory for `free`; `bytes` is rounded up to the size of the allocation.
uint8_t* allocate_block(size_t* bytes);

// Pool of output memory, which is reused after the consumer has released it. After a fork, the child leaks the blocks
// that it releases, because another thread of the parent may have held the lock. With `resources` the memory is a
// GPU's.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  struct Block {
    std::shared_ptr<BlockPool> pool;
    uint8_t* data = nullptr;
    size_t capacity = 0;
    uintptr_t stream = kNoStream;  // stream on which a consumer uses GPU memory; the next writer must follow it
    Block() = default;
    Block(Block&& o) noexcept { *this = std::move(o); }
    Block& operator=(Block&& o) noexcept;
    ~Block();
  };
  static constexpr uintptr_t kNoStream = ~uintptr_t{0};
  // Blocks that consumers may hold in any number: the pool keeps as many as they recently held together. To free memory
  // of a GPU takes until all of its streams have done their work, while other threads can launch nothing.
  enum class Idle { Few, AsManyAsHeld };
  explicit BlockPool(size_t kept, const gpu::DeviceResources* resources = nullptr, Idle idle = Idle::Few);
  Block take(size_t bytes);
  ~BlockPool();

 private:
  friend struct Block;
  struct Free {
    uint8_t* data;
    size_t capacity;
    uintptr_t stream;
  };
  void give(const Free& block);
  uint8_t* allocate(size_t* bytes);
  void release(const Free& block) noexcept;
  void release_all();
  // Return whether a block is so large that no recent request would get it. Requires the lock.
  bool is_outlier(const Free& block) const { return block.capacity > max_capacity(high_water_mark_.bytes()); }
  static size_t max_capacity(size_t bytes) { return 4 * bytes + 65536; }  // of a block that serves a request
  std::vector<Free> note(size_t bytes);  // returns blocks to release. Requires the lock
  void hold();                           // counts a block. Requires the lock
  size_t max_idle() const;               // requires the lock
  bool may_overallocate(size_t bytes) const { return !quota_ || quota_->may_overallocate(bytes + bytes / 8); }
  const size_t kept_;  // maximum number of idle blocks, or with AsManyAsHeld the least; the others return to the system
  const Idle idle_;
  const int pid_;
  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<gpu::MemoryQuota> quota_;
  std::mutex mutex_;
  std::vector<Free> free_;
  RecentHighWaterMark high_water_mark_;  // of requests
  RecentHighWaterMark most_held_;        // blocks
  size_t requests_ = 0, held_ = 0;
};

}  // namespace stoker
