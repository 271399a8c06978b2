// SPDX-License-Identifier: Apache-2.0
// File access of rows: opening, reading, and the distinction between bad files and a failing system.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/tensor.hpp"

struct iovec;

namespace stoker {

// Failure of the operating system: no descriptors, no memory, a mount that is gone. The sample that was read is not to
// blame.
struct SystemFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Input/output error: a bad sector of one file, or a dead disk. The following files decide which.
struct ReadFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class OpenFile {
 public:
  OpenFile() = default;
  // Open without waiting: a pipe without a writer must not block a worker for ever.
  explicit OpenFile(const std::string& path);
  ~OpenFile() { close(); }
  OpenFile(OpenFile&& from) noexcept : fd_(std::exchange(from.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& from) noexcept {
    std::swap(fd_, from.fd_);
    return *this;
  }
  void close();
  explicit operator bool() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  // Return a number that changes when the file is written to (from its size and the time of its last change of any
  // kind); 0 if it is not known.
  uint64_t state() const;
  // Return false if there are fewer bytes or they cannot be read.
  bool read_at(uint64_t offset, uint8_t* to, size_t bytes) const;

 private:
  int fd_ = -1;
};

// Read up to `bytes` bytes from `offset` on, continuing after signals. Return the number of bytes before the end of the
// file, or -1 (`errno` has the reason).
int64_t read_file(int fd, uint64_t offset, uint8_t* to, size_t bytes);

// Fill adjacent pieces of memory like `read_file`, with one call of the system if all bytes are in the page cache.
int64_t read_pieces(int fd, uint64_t offset, const struct iovec* pieces, int count);

// Return the nanoseconds in which `read_file` and `read_pieces` have waited for a disk on the calling thread, and reset
// them.
uint64_t take_disk_wait_ns();

// Outcome of a request to read ahead.
struct ReadAheadOutcome {
  uint64_t bytes = 0;     // requested
  bool is_cached = true;  // the bytes were in the page cache before
};

// Make the system read `bytes` bytes from `offset` on into the page cache, without waiting for them. Of a longer range
// only the beginning is requested, since the system itself reads ahead within it.
ReadAheadOutcome request_read_ahead(int fd, uint64_t offset, uint64_t bytes);

// File that one step of a row opened and a later step continues to read.
struct HeldFile {
  uint64_t name = 0;
  OpenFile file;
};

// Sizes of a table's files in bytes when they were last read; 0: not read yet.
class KnownFileSizes {
 public:
  explicit KnownFileSizes(size_t files) : files_(files), sizes_(new std::atomic<uint32_t>[files]()) {}
  double of(uint64_t index) const { return index < files_ ? sizes_[index].load(std::memory_order_relaxed) : 0.0; }
  void record(uint64_t index, int64_t bytes) const {
    sizes_[index].store(static_cast<uint32_t>(std::min<int64_t>(bytes, UINT32_MAX)), std::memory_order_relaxed);
  }

 private:
  const size_t files_;
  const std::unique_ptr<std::atomic<uint32_t>[]> sizes_;
};

// Check a size that a file system reports before memory is allocated for it. Return false with the reason in `error`.
constexpr uint64_t kSaneBytes = uint64_t{1} << 40;
bool has_sane_size(uint64_t bytes, const std::string& path, std::string& error);

// Put the reason for a failed call into `error` and return false. Throw SystemFailure if the file is not to blame, and
// ReadFailure if it may be.
bool cannot_read(const std::string& path, int code, std::string& error);

// Return whether `file`, which the caller has just opened, is a regular file, and its size; else return false with the
// reason in `error`.
bool is_regular(const OpenFile& file, const std::string& path, uint64_t& size, std::string& error);

// Read a whole regular file as a view of bytes; return false with the reason in `error`. The file is read and not
// mapped, because a file that shrinks while it is mapped would end the process.
bool read_whole(const OpenFile& file, const std::string& path, BufferAllocator& allocator, View& out,
                std::string& error);
// The same for a caller that does not look at the bytes: they may be in device memory (BufferAllocator::read_to_device).
bool read_whole_to_any_memory(const OpenFile& file, const std::string& path, BufferAllocator& allocator, View& out,
                              std::string& error);

}  // namespace stoker
