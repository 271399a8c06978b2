// SPDX-License-Identifier: Apache-2.0
// What is kept of a file that has been decoded once; see jpeg_index.hpp.
#pragma once
#include "jpeg_row.cuh"

namespace stoker::jpeg::gpu {

constexpr uint32_t kIndexSubsequences = 512;

// How a subsequence begins.
struct Beginning {
  uint32_t blocks;          // before it, the one under way not counted
  int16_t dc[kMaxPlanes];   // the components' last DC coefficients
  uint16_t state;
};

struct IndexEntry {
  Checksum checksum;        // of the data, unstuffed
  uint32_t bytes;           // of them
  uint32_t bits, count;     // per subsequence; subsequences
  uint32_t unused[3];
  Beginning at[kIndexSubsequences];
  static constexpr uint64_t kBytes = 32 + 12 * kIndexSubsequences;
};
static_assert(sizeof(IndexEntry) == IndexEntry::kBytes);

}  // namespace stoker::jpeg::gpu
