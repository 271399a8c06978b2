// SPDX-License-Identifier: Apache-2.0
// What the first decoding of a file finds out and later ones need not: in which state each subsequence of its data
// begins, with how many blocks before it and which DC predictions. Entries are written and read on the device alone;
// the host knows files by a hash of their headers and of parts of their data, and which entries are complete.
//
// An entry is only believed where the data have the checksum that it was written for, and what is decoded with it must
// pass through the states that it names; else the file is decoded without one. So one that is wrong costs time.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gpu.hpp"

namespace stoker::jpeg::gpu {

class Index {
 public:
  using Allocate = std::function<stoker::gpu::Address(size_t)>;  // throws std::bad_alloc
  using Release = std::function<void(stoker::gpu::Address)>;

  // Takes up to `limit_bytes` of the device's memory, as files come. What finds no room is decoded without.
  Index(size_t limit_bytes, Allocate allocate, Release release);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // What a file's entry is good for now.
  enum class Use : uint8_t { None, Write, Read };
  struct Found {
    Use use = Use::None;
    uint32_t slot = 0;
    stoker::gpu::Address entry = 0;
  };
  Found find(uint64_t key);
  // The batch with an entry to be written has finished: it was, or it was not.
  void written(uint32_t slot, bool complete);
  // An entry was read, and was of use or was not.
  void read(uint32_t slot, bool right);

  uint32_t seed() const { return seed_; }  // of checksums

  size_t files() const;       // with complete entries
  size_t bytes() const;       // of the device's memory
  int64_t rows_read() const;  // that were decoded with an entry
  int64_t rows_wrong() const; // that had one that was of no use

 private:
  enum class State : uint8_t { Writing, Complete, Dropped };
  stoker::gpu::Address address(uint32_t slot) const;
  bool make_room();

  const size_t most_slots_;
  const uint32_t seed_;
  const Allocate allocate_;
  const Release release_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, uint32_t> slots_;
  std::vector<State> states_;
  std::vector<stoker::gpu::Address> chunks_;
  bool full_ = false;
  size_t complete_ = 0;
  int64_t rows_read_ = 0, rows_wrong_ = 0;
};

// What a file is known by: its size, header and some of its data.
uint64_t file_key(const uint8_t* data, size_t size, size_t header_bytes);

}  // namespace stoker::jpeg::gpu
