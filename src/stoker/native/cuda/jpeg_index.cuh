// SPDX-License-Identifier: Apache-2.0
// What is kept of a file that has been decoded once; see jpeg_index.hpp.
#pragma once
#include "jpeg_row.cuh"

namespace stoker::jpeg::gpu {

// Subsequences that the threads of a row decode of a file that gets an entry; of files in segments (between restart
// markers), so many segments at most.
constexpr uint32_t kIndexSubsequences = 512, kIndexSegments = kIndexSubsequences / 2;
// Those of a long file are noted in several pieces each, so that later its longest chain of steps is not longer than
// others': a piece for so many bytes of the file.
constexpr uint32_t kIndexPieceBytes = 1u << 17, kIndexPieces = 8;
// A file is read in chunks of so many subsequences.
constexpr uint32_t kChunkSubsequences = 8, kIndexChunks = kIndexSubsequences / kChunkSubsequences;

// How a piece begins.
struct Beginning {
  uint32_t blocks;          // before it, the one under way not counted
  int16_t dc[kMaxPlanes];   // the components' running sums of DC differences
  uint16_t state;
};

// As much of it is there as `bytes_of` says. Who changes what an entry says raises the version of the files that hold
// entries, too (device/index_parts.py).
struct IndexEntry {
  Checksum seal;            // of all that follows
  Checksum checksum;        // of the data, unstuffed
  uint32_t bytes;           // of them
  uint32_t bits, count;     // per piece; pieces
  uint32_t pieces;          // of a subsequence
  Checksum chunk[kIndexChunks];  // of files without segments: each one's part of `checksum`
  Beginning at[kIndexSubsequences * kIndexPieces];  // zeros behind `count`

  static constexpr uint64_t bytes_of(uint32_t pieces) { return kHead + uint64_t{12} * kIndexSubsequences * pieces; }
  static constexpr uint64_t kHead = 32 + 8 * kIndexChunks;
};
static_assert(sizeof(IndexEntry) == IndexEntry::bytes_of(kIndexPieces));
static_assert(sizeof(Beginning) == 12 && kMaxPlanes == 3);

// What an entry's seal is the sum of over all `parts`. What decoding passes through is not enough to tell that an entry is
// right: nothing leads to a first state, a wrong one may meet the next by chance, and sums of DC meet nothing.
// The seed is the file's: another file's entry does not have this one's seal. `pieces`: as the file's entries have.
STOKER_DEVICE Checksum part_of_seal(const IndexEntry& entry, uint32_t pieces, uint32_t part, uint32_t parts, uint32_t seed) {
  Checksum sum = {};
  const auto pair = [](uint32_t low, uint32_t high) { return (low & 0xFFFF) | high << 16; };
  const auto add = [&](uint32_t word, uint32_t at) { add_to(sum, word, at, ~seed); };
  constexpr uint32_t kBeginnings = 6 + 2 * kIndexChunks;
  for (uint32_t i = part; i < kIndexSubsequences * pieces; i += parts) {
    const Beginning& begin = entry.at[i];
    add(begin.blocks, kBeginnings + 3 * i);
    add(pair(static_cast<uint32_t>(begin.dc[0]), static_cast<uint32_t>(begin.dc[1])), kBeginnings + 3 * i + 1);
    add(pair(static_cast<uint32_t>(begin.dc[2]), begin.state), kBeginnings + 3 * i + 2);
  }
  for (uint32_t i = part; i < kIndexChunks; i += parts) {
    add(entry.chunk[i].low, 6 + 2 * i);
    add(entry.chunk[i].high, 6 + 2 * i + 1);
  }
  if (part > 0) return sum;
  add(entry.checksum.low, 0);
  add(entry.checksum.high, 1);
  add(entry.bytes, 2);
  add(entry.bits, 3);
  add(entry.count, 4);
  add(entry.pieces, 5);
  return sum;
}

// What the host is told of an entry: where in the file each chunk is, and what in the picture.
struct Outline {
  uint32_t bits, chunks;    // per subsequence; chunks 0: the file cannot be read in parts
  struct Chunk {
    uint32_t offset;        // in the file's entropy-coded bytes
    uint32_t blocks;        // completed before it
  } chunk[kIndexChunks];
};
static_assert(sizeof(Outline) == 8 + 8 * kIndexChunks);

}  // namespace stoker::jpeg::gpu
