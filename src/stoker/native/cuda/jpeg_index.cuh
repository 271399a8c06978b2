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

struct IndexEntry {
  Checksum checksum;        // of the data, unstuffed
  uint32_t bytes;           // of them
  uint32_t bits, count;     // per subsequence; subsequences
  uint32_t unused[3];
  Beginning at[kIndexSubsequences];
  Checksum chunk[kIndexChunks];  // of files without segments: each one's part of `checksum`
  static constexpr uint64_t kBytes = 32 + 12 * kIndexSubsequences + 8 * kIndexChunks;
};
static_assert(sizeof(IndexEntry) == IndexEntry::kBytes);

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
