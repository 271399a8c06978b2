// SPDX-License-Identifier: Apache-2.0
// Records of remote objects, read from the cache of their blocks (remote/block_cache.py).
#pragma once
#include <cstdint>
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
  static constexpr uint64_t kMaxPiece = 1 << 15;

  // Every range lies in its object. Codecs are Stored, TfRecord, TfRecordUnchecked and Absent. A piece has 1 to
  // kMaxPiece bytes.
  KeptBlocks(std::vector<Object> objects, PackedRanges ranges, uint64_t block_bytes, uint64_t piece_bytes)
      : objects_(std::move(objects)),
        ranges_(std::move(ranges)),
        block_bytes_(block_bytes),
        piece_bytes_(piece_bytes) {}
  size_t size() const { return ranges_.size(); }
  // Return the number of bytes of a record without its frame.
  uint64_t bytes(size_t i) const;
  // Read the bytes of record `i`. Return false if a block is missing, or its bytes are not those that were kept, or the
  // record has another frame than its range says; `to` has any bytes then. Thread-safe.
  bool read(size_t i, uint8_t* to) const;

 private:
  struct Wanted;
  bool read_block(const Wanted& wanted, uint64_t block, uint8_t* header, uint8_t* footer) const;

  const std::vector<Object> objects_;
  const PackedRanges ranges_;
  const uint64_t block_bytes_, piece_bytes_;
};

}  // namespace stoker
