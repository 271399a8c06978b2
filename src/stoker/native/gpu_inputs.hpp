// SPDX-License-Identifier: Apache-2.0
// The bytes of a batch's files on their way to a device.
//
// Reading a file copies it from the page cache, which takes half as long again if what it is copied to is not in the
// processor's caches. So page-locked memory is used again soon. When all of a batch has been issued, the host needs
// the bytes no more: they make room for other files once they have been copied. If the device leaves a row to the CPU after
// all, they are fetched back. Few threads send blocks of a few megabytes as soon as they are full, while others of the batch are
// being read; with many, a call of the driver takes so long that each batch is sent in one, when its last file has been read: one
// thread does that while the others describe rows, so that the launches are planned while the bytes are on their way.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu_memory.hpp"

namespace stoker::gpu {

// Page-locked memory that batches take in turns, the block that was in use last first. There is as much as was in use
// and being copied at the same time.
class Locked {
 public:
  struct Memory {
    uint8_t* at = nullptr;
    size_t size = 0;
  };
  explicit Locked(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  // `alike`: from now on nobody wants less. Throws std::bad_alloc.
  Memory take(size_t bytes, bool alike = false);
  void give(const Memory& memory) noexcept;
  // Once the event has passed, which it takes. Throws std::bad_alloc, and has taken nothing.
  void give_when_copied(Event event, std::vector<Memory> memory);
  size_t bytes() const;  // that it has, given or not

 private:
  struct Copied {
    Event event;
    std::vector<Memory> memory;
  };
  void look_for_copied();  // with the lock
  void put(const Memory& memory) noexcept;
  void drop(const Memory& memory) noexcept;

  const std::shared_ptr<Device> device_;
  mutable std::mutex mutex_;
  std::vector<Memory> free_;  // the last one in use on top
  std::deque<Copied> copied_; // or will be, in this order
  size_t bytes_ = 0, least_ = 0;
};

// How a batch's files are cut into blocks.
enum class Blocks : uint8_t {
  Sent,   // small; sent when they are full, which takes the device's memory early
  Small,  // small; sent with the batch. The least memory
  One,    // as many bytes as other batches needed, sent when the last file has been read
};

class Inputs {
 public:
  Inputs(std::shared_ptr<Device> device, std::shared_ptr<Locked> locked, std::shared_ptr<Behind> behind,
         std::shared_ptr<Needed> needed)
      : device_(std::move(device)), locked_(std::move(locked)), behind_(std::move(behind)),
        needed_(std::move(needed)) {}
  ~Inputs();
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  Blocks blocks = Blocks::Small;  // set before the first `take`

  // Memory to write one file to, and then to call `written`; without that call the block waits for `send`. Throws
  // std::bad_alloc.
  uint8_t* take(size_t bytes);
  void written(const uint8_t* piece) noexcept;
  // The device address behind a host address; 0 if it is not one of these. Throws std::bad_alloc.
  Address behind(const uint8_t* host);
  // Copies what has been written, beside those who ask for addresses. What cannot be done now is left to `send`.
  void send_early() noexcept;
  bool may_send_early();
  // Copies what has not been sent, where somebody has wanted an address; the lane's work comes after that. Nobody takes or
  // writes at the same time.
  void send(Lane lane);
  // The host reads them no more: its memory is given back when it has been copied. After `send`. As `give_when_copied`, if
  // it throws nothing has changed.
  void leave_host();
  // They are in host memory again, if they had left it, though elsewhere (`now_at`). The device has finished with them.
  // Throws std::bad_alloc or DeviceFailure.
  void fetch();
  // Where the byte is that was at `host` before `fetch`; the same address for other memory.
  uint8_t* now_at(uint8_t* host) const;
  void finish() noexcept;  // the device has finished with all of it: everything is free again
  void reset() noexcept;   // the same for a batch that may have come to nothing, and of which some may be on its way

 private:
  struct Block {
    Locked::Memory host;   // none between `leave_host` and `fetch`
    size_t size = 0;           // of it
    uint8_t* at = nullptr;     // where it is, or was last
    uint8_t* before = nullptr; // where it was before the last `fetch`
    Address device = 0;
    size_t behind_bytes = 0;
    size_t used = 0;
    int writing = 0;       // pieces that are not written yet
    bool sent = false;
    bool holds(const uint8_t* p, const uint8_t* begin) const { return begin && p >= begin && p < begin + used; }
    bool unsent() const { return !sent && writing == 0; }
  };
  size_t block_size(size_t bytes) const;
  bool alike() const { return blocks == Blocks::One && !device_->apart; }
  Block& add(size_t bytes);
  bool may_go_ahead(const Block& block) const { return blocks == Blocks::Sent && block.unsent(); }
  void attach(Block& block);
  bool send_block(size_t index) noexcept;
  void forget_copied() noexcept;

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Locked> locked_;
  const std::shared_ptr<Behind> behind_;
  const std::shared_ptr<Needed> needed_;
  std::mutex mutex_;
  std::deque<Block> blocks_;
  size_t used_ = 0;  // of all blocks
  std::optional<Event> copied_;  // after all copies; none: not recorded since the last one
  uint64_t copies_ = 0;          // made for the batch
  bool followed_ = true;         // by a lane's work
};

}  // namespace stoker::gpu
