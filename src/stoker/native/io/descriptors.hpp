// SPDX-License-Identifier: Apache-2.0
// Cache of open file descriptors for files from which many records are read.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "io/files.hpp"

namespace stoker {

// Bounded, thread-safe cache of open files. The first row that reads a file opens it. When there are too many, the
// oldest descriptor leaves the cache; rows that still read from it keep it open.
class Descriptors {
 public:
  struct Opened {
    OpenFile file;
    uint64_t size;  // at the time of opening
  };
  using Shared = std::shared_ptr<const Opened>;

  Descriptors();
  // Return whether an opened file is the one that is wanted; else false, with the reason in `error`.
  using Accepts = std::function<bool(const OpenFile& opened, const std::string& path, std::string& error)>;
  // Open file number `file` at `path`, unless another thread has. Return null with the reason in `error` if the file
  // cannot be read or is not accepted: the cache never has such a file. Throw SystemFailure if the system has no
  // descriptor left even after the cache released its own.
  Shared open(uint32_t file, const std::string& path, std::string& error, const Accepts& accepts = {});
  // Return file number `file` if it is open, else null.
  Shared find_open(uint32_t file) const;
  // Close all files. Files that later calls open are closed after their last reader.
  void close();
  size_t size() const;

 private:
  Shared keep(uint32_t file, Shared opened);
  bool evict_all();

  const size_t max_open_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::unordered_map<uint32_t, Shared> open_;
  std::deque<uint32_t> order_;  // in the order of opening
};

}  // namespace stoker
