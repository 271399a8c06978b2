// SPDX-License-Identifier: Apache-2.0
// Staging of a batch's files: from the file system through page-locked memory to the device.
//
// Reading a file copies it from the page cache. The copy takes half as long again if its destination is not in the
// processor's caches, so page-locked memory is reused soon. After a batch has been issued, the host does not need the
// bytes: their memory is reused as soon as they are copied. If the device leaves a row to the CPU after all, the bytes
// are fetched back. With few threads, blocks of a few megabytes are sent as soon as they are full, while other files of
// the batch are being read. With many threads a call of the driver takes too long for that, so each batch is sent as
// one block when its last file has been read: one thread sends it while the others describe rows, so that launches are
// planned during the copy.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/memory.hpp"

namespace stoker::gpu {

// Pool of page-locked memory. Batches take blocks from it, the most recently used block first. It has as many blocks as
// were in use or being copied at the same time.
class PinnedPool {
 public:
  struct Memory {
    uint8_t* at = nullptr;
    size_t size = 0;
  };
  explicit PinnedPool(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Return a block. `alike` declares that no later batch needs less. Throw std::bad_alloc.
  Memory take(size_t bytes, bool alike = false);
  void release(const Memory& memory) noexcept;
  // Release memory after `event` has passed, and the event as well. If std::bad_alloc is thrown, nothing has changed.
  void release_when_copied(Event event, std::vector<Memory> memory);
  size_t bytes() const;  // of all blocks, in use or not

 private:
  struct Copied {
    Event event;
    std::vector<Memory> memory;
  };
  void collect_copied();  // requires the lock
  void put(const Memory& memory) noexcept;
  void drop(const Memory& memory) noexcept;

  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  std::vector<Memory> free_;   // the most recently used one on top
  std::deque<Copied> copied_;  // in the order of their copies
  size_t bytes_ = 0, least_ = 0;
};

// Policy for the blocks of a batch's files.
enum class BlockPolicy : uint8_t {
  SendWhenFull,  // small blocks, sent when they are full; takes device memory early
  Small,         // small blocks, sent with the batch; needs the least memory
  Single,        // one block of the size that other batches needed, sent when the last file has been read
};

class Inputs {
 public:
  Inputs(std::shared_ptr<Device> device, std::shared_ptr<PinnedPool> pinned_pool,
         std::shared_ptr<DeviceBackingPool> backing_pool, std::shared_ptr<HighWaterMark> high_water_mark)
      : device_(std::move(device)),
        pinned_pool_(std::move(pinned_pool)),
        backing_pool_(std::move(backing_pool)),
        high_water_mark_(std::move(high_water_mark)) {}
  ~Inputs();
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  BlockPolicy block_policy = BlockPolicy::Small;  // set it before the first `take`

  // Return memory for one file. The caller calls `written` when the file is complete; otherwise the block waits for
  // `send`. Throw std::bad_alloc.
  uint8_t* take(size_t bytes);
  void written(const uint8_t* piece) noexcept;
  // Return the device address of a host address; 0 if it is not in these blocks. Throw std::bad_alloc.
  Address device_address(const uint8_t* host);
  // Return whether memory was taken for this batch.
  bool has_files() const { return used_ > 0; }
  // Copy what has been written, concurrently with threads that ask for addresses. What cannot be copied now is left to
  // `send`.
  void send_early() noexcept;
  bool may_send_early();
  // Copy the rest, as far as a step has asked for addresses. The stream's work waits for the copies. No other thread may
  // take or write memory at the same time.
  void send(WorkStream work_stream);
  // Release the host memory after it has been copied. Call after `send`. If an exception is thrown, nothing has changed
  // (see `release_when_copied`).
  void release_host_memory();
  // Fetch the files back to host memory, at other addresses (`current_address`), if they were released. The device must
  // have finished with them. Throw std::bad_alloc or DeviceFailure.
  void fetch();
  // Return the address after `fetch` of a byte that was at `host` before; other addresses are returned unchanged.
  uint8_t* current_address(uint8_t* host) const;
  void finish() noexcept;  // releases everything; the device has finished with the files
  void reset() noexcept;   // the same for a batch that may have failed while copies are in flight

 private:
  struct Block {
    PinnedPool::Memory host;    // empty between `release_host_memory` and `fetch`
    size_t size = 0;            // of `host`
    uint8_t* at = nullptr;      // current or last address
    uint8_t* before = nullptr;  // address before the last `fetch`
    Address device = 0;
    size_t backing_bytes = 0;
    size_t used = 0;
    int writing = 0;  // number of pieces that are not written yet
    bool sent = false;
    bool holds(const uint8_t* p, const uint8_t* begin) const { return begin && p >= begin && p < begin + used; }
    bool unsent() const { return !sent && writing == 0; }
  };
  size_t block_size(size_t bytes) const;
  bool has_equal_blocks() const { return block_policy == BlockPolicy::Single && !device_->separate_allocations; }
  Block& add(size_t bytes);
  bool may_go_ahead(const Block& block) const { return block_policy == BlockPolicy::SendWhenFull && block.unsent(); }
  void attach(Block& block);
  bool send_block(size_t index) noexcept;
  void forget_copied() noexcept;

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<PinnedPool> pinned_pool_;
  const std::shared_ptr<DeviceBackingPool> backing_pool_;
  const std::shared_ptr<HighWaterMark> high_water_mark_;
  std::mutex mutex_;
  std::deque<Block> blocks_;
  size_t used_ = 0;              // over all blocks
  std::optional<Event> copied_;  // event after all copies; none: not recorded since the last one
  uint64_t copies_ = 0;          // number of copies for the batch
  bool followed_ = true;         // a stream's work waits for the copies
};

}  // namespace stoker::gpu
