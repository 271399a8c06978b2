// SPDX-License-Identifier: Apache-2.0
// Reads of files into device memory through bounce buffers: small page-locked buffers that are reused as soon as their
// copy has passed. Each read has a lane: a stream, and a few buffers in turn, so that the file system fills one while
// another one is being copied. Idle threads read pieces of a large file with lanes of their own. A piece is still in the processor's caches when the device fetches it, and a file begins
// to arrive while its rest is being read. Staging of whole batches (gpu/inputs.hpp) has neither: a block of 100 MiB and
// more is read to memory, and is copied when its last file is there.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/idle_threads.hpp"

namespace stoker::gpu {

class BounceReads {
 public:
  static constexpr size_t kLeastPiece = size_t{64} << 10, kMostPiece = size_t{64} << 20;
  static constexpr int kMostBuffers = 8;

  // `piece`: bytes of a buffer, from kLeastPiece to kMostPiece; `buffers`: of a lane, 1 to kMostBuffers. Throw
  // std::invalid_argument.
  BounceReads(std::shared_ptr<Device> device, size_t piece, int buffers);
  ~BounceReads();
  BounceReads(const BounceReads&) = delete;
  BounceReads& operator=(const BounceReads&) = delete;

  // Number of pieces from which on idle threads take part in a read: waking a thread costs up to a tenth of a piece.
  static constexpr size_t kSharedPieces = 4;

  // Read `bytes` bytes of an open file from `offset` on to a device address that no device work uses. Return events that
  // have all passed when they are there, which the caller releases; or none if the file ends before or cannot be read,
  // with no copy in flight. Throw DeviceFailure or std::bad_alloc, likewise. `others`: null: this thread
  // alone. Thread-safe: there are as many lanes as threads that read at the same time.
  std::vector<Event> read(int descriptor, uint64_t offset, Address to, size_t bytes, IdleThreads* others = nullptr);

  // Sums over all complete reads, on their threads.
  struct Times {
    uint64_t reads = 0, bytes = 0;
    uint64_t ns = 0;        // whole reads, summed over the threads that share one
    uint64_t file_ns = 0;   // of them in the file system
    uint64_t await_ns = 0;  // and waiting for copies
  };
  Times times() const;
  size_t pinned_bytes() const;

 private:
  struct Buffer {
    uint8_t* at = nullptr;
    std::optional<Event> copied;  // none: not in use
  };
  struct Lane {
    std::optional<uintptr_t> stream;
    std::vector<Buffer> buffers;
    size_t turn = 0;
  };
  struct Request;
  void read_pieces(Request& request);
  bool read_piece(Request& request, size_t piece, Lane& lane, Times& times);
  void await_all(const std::vector<Event>& events) noexcept;
  std::unique_ptr<Lane> take();
  void give(std::unique_ptr<Lane> lane) noexcept;
  void drop(Lane& lane) noexcept;
  void settle(Lane& lane) noexcept;  // waits for its copies
  uint8_t* next_buffer(Lane& lane, Times& times);

  const std::shared_ptr<Device> device_;
  const size_t piece_;
  const size_t buffers_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> free_;  // the most recently used one on top
  size_t lanes_ = 0;
  Times times_;
};

}  // namespace stoker::gpu
