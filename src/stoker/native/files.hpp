// SPDX-License-Identifier: Apache-2.0
// Files as rows read them.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tensor.hpp"

namespace stoker {

class OpenFile {
 public:
  OpenFile() = default;
  // Without waiting: a pipe that nobody writes to must not hold a worker for ever.
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
  // What tells whether it was written to since (size and time of the last change of any kind), as a number; 0: not known.
  uint64_t state() const;
  // False: there are not so many bytes, or they cannot be read.
  bool read_at(uint64_t offset, uint8_t* to, size_t bytes) const;

 private:
  int fd_ = -1;
};

// A file that one step of a row has opened and a later one goes on reading.
struct HeldFile {
  uint64_t name = 0;
  OpenFile file;
};

// How large the files of a table were when they were last read, in bytes; 0: not read yet.
class SeenSizes {
 public:
  explicit SeenSizes(size_t files) : files_(files), sizes_(new std::atomic<uint32_t>[files]()) {}
  double of(uint64_t index) const { return index < files_ ? sizes_[index].load(std::memory_order_relaxed) : 0.0; }
  void saw(uint64_t index, int64_t bytes) const {
    sizes_[index].store(static_cast<uint32_t>(std::min<int64_t>(bytes, UINT32_MAX)), std::memory_order_relaxed);
  }

 private:
  const size_t files_;
  const std::unique_ptr<std::atomic<uint32_t>[]> sizes_;
};

// A size that a file system tells is no reason to take memory. False: `error` says so.
bool has_sane_size(uint64_t bytes, const std::string& path, std::string& error);

// All of a regular file as a view of bytes; false: `error` says why not. Read, not mapped: a file that shrinks while it
// is mapped would end the process.
bool read_whole(const OpenFile& file, const std::string& path, Room& room, View& out, std::string& error);

}  // namespace stoker
