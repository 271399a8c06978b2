// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shared/device.cuh"

namespace stoker::gpu {

constexpr uint32_t kMaxWarps = 32;

// Return the sum of `v` over the block's threads up to and including this one, and the sum over all of them in `total`.
// All threads must take part; their number is a multiple of 32. `sums` is shared memory for kMaxWarps numbers, and may
// be reused afterwards.
STOKER_DEVICE uint32_t inclusive_sum(uint32_t v, uint32_t* sums, uint32_t& total) {
  const uint32_t lane = thread_index() % kWarp, warp = thread_index() / kWarp, warps = thread_count() / kWarp;
  for (uint32_t distance = 1; distance < kWarp; distance *= 2) {
    const uint32_t other = shuffle_up(v, distance);
    if (lane >= distance) v += other;
  }
  if (lane == kWarp - 1) sums[warp] = v;
  block_barrier();
  total = 0;
  for (uint32_t w = 0; w < warps; ++w) {
    if (w < warp) v += sums[w];
    total += sums[w];
  }
  block_barrier();
  return v;
}

}  // namespace stoker::gpu
