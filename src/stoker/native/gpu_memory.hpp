// SPDX-License-Identifier: Apache-2.0
// Memory of a batch on its way to a device. It is taken piece by piece by many threads, never moves, and is kept from
// batch to batch, so that the steady state allocates nothing.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "gpu_device.hpp"

namespace stoker::gpu {

constexpr size_t kAlignment = 256;

inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Kernels read bytes as the aligned words that they lie in, so that a piece has whole words.
inline size_t piece_size(size_t bytes, bool apart) {
  const size_t some = bytes ? bytes : 1;
  return apart ? (some + 3) / 4 * 4 : aligned(some);
}

// What a pipeline may take of the device's memory is not enough.
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

// How much device memory a pipeline has taken, and the most it may.
struct Account {
  std::atomic<uint64_t> taken{0};
  uint64_t limit = ~uint64_t{0};

  // Throws LimitReached.
  void take(uint64_t bytes) {
    const uint64_t before = taken.fetch_add(bytes);
    if (before + bytes <= limit) return;
    taken.fetch_sub(bytes);
    throw LimitReached(limit, before, bytes);
  }
  // Of what is taken already. Throws LimitReached as well, and has counted it then.
  void note(uint64_t bytes) {
    const uint64_t before = taken.fetch_add(bytes);
    if (before + bytes > limit) throw LimitReached(limit, before, bytes);
  }
  void give(uint64_t bytes) { taken.fetch_sub(bytes); }
  bool unlimited() const { return limit > uint64_t{1} << 60; }
  // Whether more may be taken than is asked for, so that a larger batch finds it: where little of the limit is taken.
  bool generous(uint64_t bytes) const { return unlimited() || (bytes <= limit && taken + bytes <= limit / 4); }
};

// The most that a batch has needed of one kind of memory so far. What the first batch found out piece by piece, the next
// ones take at once: allocating page-locked memory, and giving any back, holds up the device.
class Needed {
 public:
  size_t bytes() const { return most_.load(std::memory_order_relaxed); }
  void saw(size_t bytes) {
    size_t most = this->bytes();
    while (bytes > most && !most_.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<size_t> most_{0};
};

// The device's memory behind the page-locked memory of batches. A batch has some from when it first wants an address
// there until the device has finished with it; there is as much as batches have had at the same time.
class Behind {
 public:
  Behind(std::shared_ptr<Device> device, std::shared_ptr<Account> account)
      : device_(std::move(device)), account_(std::move(account)) {}
  ~Behind();
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

  struct Memory {
    Address at = 0;
    size_t size = 0;
  };
  Memory take(size_t bytes);  // throws std::bad_alloc
  void give(const Memory& memory) noexcept;
  bool has(size_t bytes);     // or can have, at this moment

 private:
  Memory allocate(size_t bytes);
  void drop(const Memory& memory) noexcept;
  void drop_largest();  // with the lock

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Account> account_;
  std::mutex mutex_;
  std::vector<Memory> free_;
};

// Pieces of a few large blocks, of the device's memory; or, if it has a `behind`, of page-locked host memory: what is
// written into a piece there is at the piece's device address after `send`. Many threads take pieces at the same time,
// and wait for each other only where a block is added, or gets its memory on the device.
class Arena {
 public:
  Arena(std::shared_ptr<Device> device, std::shared_ptr<Account> account, std::shared_ptr<Needed> needed,
        std::shared_ptr<Behind> behind = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  struct Piece {
    uint8_t* host;   // null without host memory
    Address device;
  };
  Piece take(size_t bytes);  // aligned; throws std::bad_alloc
  uint8_t* take_host(size_t bytes);  // the same, while the device's memory behind it may not be there yet
  // The device address behind a host address; 0 if it is not one of this arena's. Throws std::bad_alloc.
  Address behind(const uint8_t* host);
  // Copies what has been taken since the last call to the device, where somebody has wanted an address. Part of the work.
  void send(Lane lane);
  // The device has finished with all of it.
  void leave_device() noexcept;
  // Everything is free again. What took several blocks takes one from now on.
  void reset();

 private:
  struct Block {
    uint8_t* host = nullptr;
    std::atomic<Address> device{0};
    size_t size = 0, sent = 0;
    size_t behind_bytes = 0;
    std::atomic<size_t> used{0};

    // False: there is not as much left.
    bool take(size_t bytes, size_t* at) {
      *at = used.load(std::memory_order_relaxed);
      while (size - *at >= bytes)
        if (used.compare_exchange_weak(*at, *at + bytes, std::memory_order_relaxed)) return true;
      return false;
    }
    bool holds(const uint8_t* at) const { return host <= at && at < host + size; }
  };
  using Owned = std::unique_ptr<Block>;
  Piece take_from(bool on_device, size_t bytes);
  Block& add_block(size_t bytes, bool on_device);
  void attach(Block& block);
  size_t with_slack(size_t bytes) const;
  Owned make(size_t size, bool on_device);
  Owned try_to_make(size_t size, bool on_device);
  void drop(const Block& block) noexcept;
  size_t used() const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Account> account_;
  const std::shared_ptr<Needed> needed_;
  const std::shared_ptr<Behind> behind_;
  std::mutex mutex_;
  std::vector<Owned> blocks_;
  std::atomic<Block*> last_{nullptr};  // of blocks_; null where every piece is a block of its own
};

// Arenas without host memory that batches take in turns: there are as many as batches have used at the same time.
class ArenaPool {
 public:
  ArenaPool(std::shared_ptr<Device> device, std::shared_ptr<Account> account)
      : device_(std::move(device)), account_(std::move(account)) {}
  std::unique_ptr<Arena> take();
  void give(std::unique_ptr<Arena> arena);  // the device has finished with what is in it

 private:
  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<Needed> needed_ = std::make_shared<Needed>();
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> free_;  // the last one used on top
};

}  // namespace stoker::gpu
