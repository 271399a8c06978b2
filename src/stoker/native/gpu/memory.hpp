// SPDX-License-Identifier: Apache-2.0
// Memory of batches for uploads and intermediate results. Many threads take pieces of it; pieces never move, and memory
// is kept from batch to batch, so that the steady state allocates nothing.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.hpp"

namespace stoker::gpu {

constexpr size_t kAlignment = 256;

inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Kernels read bytes as the aligned words that contain them, so a piece consists of whole words.
inline size_t piece_size(size_t bytes, bool separate_allocations) {
  const size_t some = bytes ? bytes : 1;
  return separate_allocations ? (some + 3) / 4 * 4 : aligned(some);
}

// The pipeline's limit of device memory is exceeded.
class LimitReached : public std::bad_alloc {
 public:
  LimitReached(uint64_t limit, uint64_t taken, uint64_t bytes)
      : text_("there is not enough memory: expected at most " + std::to_string(limit) +
              " bytes of the GPU's (`gpu_memory_limit`), got " + std::to_string(taken) + " in use and " +
              std::to_string(bytes) + " more") {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Device memory that a pipeline has taken, and its limit.
struct MemoryQuota {
  std::atomic<uint64_t> taken{0};
  std::atomic<uint64_t> limit{~uint64_t{0}};

  // Count memory that will be allocated. Throw LimitReached. Refused bytes are never counted, not even temporarily:
  // another thread could be refused because of them.
  void charge(uint64_t bytes) {
    uint64_t before = taken.load();
    do {
      const uint64_t most = limit;
      if (before > most || bytes > most - before) throw LimitReached(most, before, bytes);
    } while (!taken.compare_exchange_weak(before, before + bytes));
  }
  // Count memory that is allocated already. Throw LimitReached as well, but count the bytes nevertheless.
  void charge_taken(uint64_t bytes) {
    const uint64_t before = taken.fetch_add(bytes);
    if (before + bytes > limit) throw LimitReached(limit, before, bytes);
  }
  void release(uint64_t bytes) { taken.fetch_sub(bytes); }
  bool is_unlimited() const { return limit > uint64_t{1} << 60; }
  // Return whether more may be allocated than requested, so that a larger batch fits: only if little of the limit is
  // used.
  bool may_overallocate(uint64_t bytes) const {
    return is_unlimited() || (bytes <= limit && taken + bytes <= limit / 4);
  }
};

// High-water mark of one kind of memory over all batches. The first batch takes its memory piece by piece, the next
// ones take this amount in one piece: allocating and freeing page-locked memory stalls the device.
class HighWaterMark {
 public:
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  void record(size_t bytes) {
    size_t most = this->bytes();
    while (bytes > most && !bytes_.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {}
  }

 private:
  std::atomic<size_t> bytes_{0};
};

// Pool of device memory for the page-locked memory of batches. A batch has a block from the first request for a device
// address until the device has finished with it. The pool has as many blocks as batches used at the same time.
class DeviceBackingPool {
 public:
  DeviceBackingPool(std::shared_ptr<Device> device, std::shared_ptr<MemoryQuota> quota)
      : device_(std::move(device)), quota_(std::move(quota)) {}
  ~DeviceBackingPool();
  DeviceBackingPool(const DeviceBackingPool&) = delete;
  DeviceBackingPool& operator=(const DeviceBackingPool&) = delete;

  struct Memory {
    Address at = 0;
    size_t size = 0;
  };
  Memory take(size_t bytes);  // throws std::bad_alloc
  void release(const Memory& memory) noexcept;
  bool has(size_t bytes);  // or could allocate it now

 private:
  Memory allocate(size_t bytes);
  void drop(const Memory& memory) noexcept;
  void drop_largest();  // requires the lock

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<MemoryQuota> quota_;
  std::mutex mutex_;
  std::vector<Memory> free_;
};

// Arena: pieces of a few large blocks of device memory or, with a backing pool, of page-locked host memory; `send` then
// copies pieces to their device addresses. Many threads take pieces concurrently; they wait for each other only while a
// block is added or gets its device memory.
class Arena {
 public:
  Arena(std::shared_ptr<Device> device, std::shared_ptr<MemoryQuota> quota,
        std::shared_ptr<HighWaterMark> high_water_mark, std::shared_ptr<DeviceBackingPool> backing_pool = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  struct Piece {
    uint8_t* host;  // null in an arena of device memory
    Address device;
  };
  Piece take(size_t bytes);          // aligned; throws std::bad_alloc
  uint8_t* take_host(size_t bytes);  // the same, but device memory is taken later
  // Return the device address of a host address; 0 if it is not in this arena. Throw std::bad_alloc.
  Address device_address(const uint8_t* host);
  // Copy what has been taken since the last call to the device, as far as a step has asked for addresses. Ordered with
  // the stream's work.
  void send(WorkStream work_stream);
  // Release the device memory; the device has finished with all of it.
  void release_device_memory() noexcept;
  // Free all pieces. If there were several blocks, one block of their size replaces them.
  void reset();

 private:
  struct Block {
    uint8_t* host = nullptr;
    std::atomic<Address> device{0};
    size_t size = 0, sent = 0;
    size_t backing_bytes = 0;
    std::atomic<size_t> used{0};
    size_t end = 0;  // not 0: the block is closed, and this much of it was used

    size_t taken() const { return end ? end : used.load(); }
    // Take no further pieces from the block.
    void close() { end = used.exchange(size); }
    void open() { used = std::exchange(end, 0); }

    // Return false if there is not enough space left.
    bool take(size_t bytes, size_t* at) {
      *at = used.load(std::memory_order_relaxed);
      while (size - *at >= bytes)
        if (used.compare_exchange_weak(*at, *at + bytes, std::memory_order_relaxed)) return true;
      return false;
    }
    Piece piece(size_t at, Address there) const { return {host ? host + at : nullptr, there ? there + at : 0}; }
    bool holds(const uint8_t* at) const { return host <= at && at < host + size; }
  };
  using Owned = std::unique_ptr<Block>;
  Piece take_from(bool on_device, size_t bytes);
  bool take_of_earlier(bool on_device, size_t bytes, Piece* piece);
  Block& add_block(size_t bytes, bool on_device);
  void attach(Block& block);
  bool try_to_attach(Block& block);
  size_t with_slack(size_t bytes) const;
  Owned make(size_t size, bool on_device);
  Owned try_to_make(size_t size, bool on_device);
  void drop(const Block& block) noexcept;
  size_t used() const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<MemoryQuota> quota_;
  const std::shared_ptr<HighWaterMark> high_water_mark_;
  const std::shared_ptr<DeviceBackingPool> backing_pool_;
  std::mutex mutex_;
  std::vector<Owned> blocks_;
  std::atomic<Block*> last_{nullptr};  // last of blocks_; null if every piece is a block of its own
};

// Pool of arenas of device memory: as many as batches used at the same time.
class ArenaPool {
 public:
  ArenaPool(std::shared_ptr<Device> device, std::shared_ptr<MemoryQuota> quota)
      : device_(std::move(device)), quota_(std::move(quota)) {}
  std::unique_ptr<Arena> take();
  void release(std::unique_ptr<Arena> arena);  // the device must have finished with its contents

 private:
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<MemoryQuota> quota_;
  const std::shared_ptr<HighWaterMark> high_water_mark_ = std::make_shared<HighWaterMark>();
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> free_;  // the most recently used one on top
};

}  // namespace stoker::gpu
