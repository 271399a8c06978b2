// SPDX-License-Identifier: Apache-2.0
// Layout of the index entry of a decoded JPEG file; see jpeg_index.hpp.
#pragma once
#include "shared/jpeg_row.cuh"

namespace stoker::jpeg::gpu {

// Number of subsequences into which a file with an entry is cut, and the maximum number of segments (between restart
// markers) of such a file.
constexpr uint32_t kIndexSubsequences = 512, kIndexSegments = kIndexSubsequences / 2;
// Long files note each subsequence in several pieces, one per kIndexPieceBytes of the file, so that the longest
// sequential chain of a later decoding is no longer than for other files.
constexpr uint32_t kIndexPieceBytes = 1u << 17, kIndexPieces = 8;
// Partial reads have a granularity of this many subsequences.
constexpr uint32_t kChunkSubsequences = 8, kIndexChunks = kIndexSubsequences / kChunkSubsequences;

// Decoder state at the beginning of a piece.
struct PieceStart {
  uint32_t blocks;         // completed before it, without the current one
  int16_t dc[kMaxPlanes];  // the components' running sums of DC differences
  uint16_t state;
};

// Index entry; its size is `bytes_of`. A change of the layout requires a new version of the index files
// (device/index_parts.py).
struct IndexEntry {
  Checksum seal;                                     // over everything that follows
  Checksum checksum;                                 // over the unstuffed data
  uint32_t bytes;                                    // of the unstuffed data
  uint32_t bits, count;                              // bits per piece; number of pieces
  uint32_t pieces;                                   // per subsequence
  Checksum chunk[kIndexChunks];                      // files without segments: each chunk's part of `checksum`
  PieceStart at[kIndexSubsequences * kIndexPieces];  // zeros after the first `count`

  static constexpr uint64_t bytes_of(uint32_t pieces) { return kHead + uint64_t{12} * kIndexSubsequences * pieces; }
  static constexpr uint64_t kHead = 32 + 8 * kIndexChunks;
};
static_assert(sizeof(IndexEntry) == IndexEntry::bytes_of(kIndexPieces));
static_assert(sizeof(PieceStart) == 12 && kMaxPlanes == 3);

// Return one of `parts` partial sums of an entry's seal. Consistent states alone do not prove that an entry is right:
// the first state has no predecessor, a wrong state may meet the next one by chance, and DC sums are not compared with
// anything. The seed depends on the file, so that the entry of another file has a different seal. `pieces` is the
// number of pieces in entries of this file.
STOKER_DEVICE Checksum part_of_seal(const IndexEntry& entry, uint32_t pieces, uint32_t part, uint32_t parts,
                                    uint32_t seed) {
  Checksum sum = {};
  const auto pair = [](uint32_t low, uint32_t high) { return (low & 0xFFFF) | high << 16; };
  const auto add = [&](uint32_t word, uint32_t at) { add_to(sum, word, at, ~seed); };
  constexpr uint32_t kBeginnings = 6 + 2 * kIndexChunks;
  for (uint32_t i = part; i < kIndexSubsequences * pieces; i += parts) {
    const PieceStart& begin = entry.at[i];
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

// Summary of an entry for the host: where each chunk is in the file, and where in the picture.
struct Outline {
  uint32_t bits, chunks;  // bits per subsequence; 0 chunks: the file cannot be read in parts
  struct Chunk {
    uint32_t offset;  // in the file's entropy-coded bytes
    uint32_t blocks;  // completed before it
  } chunk[kIndexChunks];
};
static_assert(sizeof(Outline) == 8 + 8 * kIndexChunks);

}  // namespace stoker::jpeg::gpu
