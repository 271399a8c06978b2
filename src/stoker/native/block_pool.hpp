// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu_job.hpp"

namespace stoker {

// Memory for `free`; `bytes` is rounded up to what was taken.
uint8_t* allocate_block(size_t* bytes);

// Output memory that is reused once the consumer has let go of it. After a fork the child leaks what it lets go of:
// another thread of the parent may have held the lock. With a `place` the memory is a GPU's.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  struct Block {
    std::shared_ptr<BlockPool> pool;
    uint8_t* data = nullptr;
    size_t capacity = 0;
    uintptr_t stream = kNoStream;  // on which a consumer works with GPU memory: who writes there next follows it
    Block() = default;
    Block(Block&& o) noexcept { *this = std::move(o); }
    Block& operator=(Block&& o) noexcept;
    ~Block();
  };
  static constexpr uintptr_t kNoStream = ~uintptr_t{0};
  explicit BlockPool(size_t kept, const gpu::Place* place = nullptr);
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
  bool generous(size_t bytes) const { return !account_ || account_->generous(bytes + bytes / 8); }
  const size_t kept_;  // most blocks that wait for use; the rest goes back to the system
  const int pid_;
  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<gpu::Account> account_;
  std::mutex mutex_;
  std::vector<Free> free_;
};

}  // namespace stoker
