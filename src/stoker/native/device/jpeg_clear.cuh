// SPDX-License-Identifier: Apache-2.0
// Zeros for coefficients before decoding, since most of them stay zero.
#pragma once
#include "shared/jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

struct alignas(16) Words4 {
  uint32_t v[4];
};

// Clear memory from unit `begin` to `end`, of 16 bytes each.
STOKER_DEVICE void clear(uint64_t memory, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin + thread_index(); i < end; i += thread_count()) pointer<Words4>(memory)[i] = {};
}

}  // namespace stoker::jpeg::gpu
