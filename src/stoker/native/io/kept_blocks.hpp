// SPDX-License-Identifier: Apache-2.0
// Records of remote objects, read from the cache of their blocks (remote/block_cache.py).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/records.hpp"

namespace stoker {

// A block is a file: its bytes, then the CRC-32C of each of its pieces. Its name is its number, its folder that of the
// object. Blocks come and go while rows run; a block that is missing, damaged or cannot be read is no error here.
class KeptBlocks {
 public:
  struct Object {
    std::string folder;
    uint64_t size;
  };
  // Ranges of records, and their objects. Thread-safe.
  class Source {
   public:
    virtual ~Source() = default;
    virtual size_t size() const = 0;
    // Find the range of record `i`, which lies in its object, and the object unless the record is absent. Return false
    // with the reason in `error` if a file with the facts cannot be read, or is damaged.
    virtual bool find(size_t i, Range& range, Object& object, std::string& error) const = 0;
    // Return whether the facts are in memory.
    virtual bool is_in_memory() const = 0;
  };
  static constexpr uint64_t kMaxPiece = 1 << 15;
  static constexpr uint64_t kCount = 8;  // bytes of the number before the data of a record of RecordIO

  // A piece has 1 to kMaxPiece bytes.
  KeptBlocks(std::shared_ptr<const Source> source, uint64_t block_bytes, uint64_t piece_bytes)
      : source_(std::move(source)), block_bytes_(block_bytes), piece_bytes_(piece_bytes) {}
  // Records whose ranges are in memory. Every range lies in its object.
  KeptBlocks(std::vector<Object> objects, PackedRanges ranges, uint64_t block_bytes, uint64_t piece_bytes);
  size_t size() const { return source_->size(); }
  bool is_in_memory() const { return source_->is_in_memory(); }
  // Find the number of bytes that a read of record `i` fills: those of the record without its frame. A record of
  // RecordIO, whose length only its frame has, takes as many as the stored one. Return false with the reason in `error`
  // if they cannot be found. Thread-safe.
  bool find_bytes(size_t i, uint64_t& bytes, std::string& error) const;
  // Read record `i` into memory of `bytes` bytes, as `find_bytes` gives them. A record of RecordIO is its number of
  // bytes (kCount bytes), the joined data, and any bytes. Return false if a block is missing, or its bytes are not those
  // that were kept, or the record has another frame or size; `to` has any bytes then. Thread-safe.
  bool read(size_t i, uint8_t* to, uint64_t bytes) const;

 private:
  struct Wanted;
  bool read_block(const Wanted& wanted, uint64_t block, uint8_t* header, uint8_t* footer) const;

  const std::shared_ptr<const Source> source_;
  const uint64_t block_bytes_, piece_bytes_;
};

}  // namespace stoker
