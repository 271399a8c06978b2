// SPDX-License-Identifier: Apache-2.0
// What is kept of a file that has been decoded once; see jpeg_index.hpp.
#pragma once
#include "jpeg_row.cuh"

namespace stoker::jpeg::gpu {

// Subsequences of a file that has an entry; of files in segments (between restart markers), so many segments at most.
constexpr uint32_t kIndexSubsequences = 512, kIndexSegments = kIndexSubsequences / 2;
// A file is read in chunks of so many subsequences.
constexpr uint32_t kChunkSubsequences = 8, kIndexChunks = kIndexSubsequences / kChunkSubsequences;

// How a subsequence begins.
struct Beginning {
  uint32_t blocks;          // before it, the one under way not counted
  int16_t dc[kMaxPlanes];   // the components' running sums of DC differences
  uint16_t state;
};

// Who changes what an entry says raises the version of the files that hold entries, too (device/index_parts.py).
struct IndexEntry {
  Checksum seal;            // of all that follows
  Checksum checksum;        // of the data, unstuffed
  uint32_t bytes;           // of them
  uint32_t bits, count;     // per subsequence; subsequences
  uint32_t unused;
  Beginning at[kIndexSubsequences];  // zeros behind `count`
  Checksum chunk[kIndexChunks];  // of files without segments: each one's part of `checksum`
  static constexpr uint64_t kBytes = 32 + 12 * kIndexSubsequences + 8 * kIndexChunks;
};
static_assert(sizeof(IndexEntry) == IndexEntry::kBytes);

// What an entry's seal is the sum of over all `parts`. What decoding passes through is not enough to tell that an entry is
// right: nothing leads to a window's first state, a wrong one may meet the next by chance, and sums of DC meet nothing.
// The seed is the file's: another file's entry does not have this one's seal.
STOKER_DEVICE Checksum part_of_seal(const IndexEntry& entry, uint32_t part, uint32_t parts, uint32_t seed) {
  Checksum sum = {};
  const auto pair = [](uint32_t low, uint32_t high) { return (low & 0xFFFF) | high << 16; };
  const auto add = [&](uint32_t word, uint32_t at) { add_to(sum, word, at, ~seed); };
  for (uint32_t i = part; i < kIndexSubsequences; i += parts) {
    const Beginning& begin = entry.at[i];
    add(begin.blocks, 3 * i);
    add(pair(static_cast<uint32_t>(begin.dc[0]), static_cast<uint32_t>(begin.dc[1])), 3 * i + 1);
    add(pair(static_cast<uint32_t>(begin.dc[2]), begin.state), 3 * i + 2);
  }
  constexpr uint32_t kChunks = 3 * kIndexSubsequences, kHead = kChunks + 2 * kIndexChunks;
  for (uint32_t i = part; i < kIndexChunks; i += parts) {
    add(entry.chunk[i].low, kChunks + 2 * i);
    add(entry.chunk[i].high, kChunks + 2 * i + 1);
  }
  if (part > 0) return sum;
  add(entry.checksum.low, kHead);
  add(entry.checksum.high, kHead + 1);
  add(entry.bytes, kHead + 2);
  add(entry.bits, kHead + 3);
  add(entry.count, kHead + 4);
  add(entry.unused, kHead + 5);
  return sum;
}
static_assert(kMaxPlanes == 3);

// What the host is told of an entry: where in the file each chunk is, and what in the picture.
struct Outline {
  uint32_t bits, chunks;    // chunks 0: the file cannot be read in parts
  struct Chunk {
    uint32_t offset;        // in the file's entropy-coded bytes
    uint32_t blocks;        // completed before it
  } chunk[kIndexChunks];
};
static_assert(sizeof(Outline) == 8 + 8 * kIndexChunks);

}  // namespace stoker::jpeg::gpu
