// SPDX-License-Identifier: Apache-2.0
// Averages over the rows of a batch, in the order of shared/pooled_rows.hpp: a warp adds one average of all rows, and
// stores the result for each of them.
#pragma once
#include "shared/pooled_rows.hpp"

namespace stoker::pool {

constexpr uint32_t kThreads = 256, kWarps = kThreads / gpu::kWarp;
static_assert(gpu::kWarp == kLanes);

struct Lanes {
  double sum[kThreads];
};

// Return the lane's sum of average number `column`. Rows are loaded several at a time, and added in their order.
template <class Average>
STOKER_DEVICE double lane_of(const Row* rows, int64_t count, int64_t column) {
  constexpr int kAhead = 8;
  double own = 0.0;
  int64_t i = static_cast<int64_t>(gpu::thread_index() % gpu::kWarp);
  const auto average_of = [&](const Row& row) {
    return static_cast<double>(reinterpret_cast<const Average*>(row.averages)[column]);
  };
  for (; i + (kAhead - 1) * kLanes < count; i += kAhead * kLanes) {
    double average[kAhead], numbers[kAhead];
    STOKER_UNROLL for (int k = 0; k < kAhead; ++k) {
      const Row row = rows[i + k * kLanes];
      average[k] = average_of(row);
      numbers[k] = row.count;
    }
    STOKER_UNROLL for (int k = 0; k < kAhead; ++k) own += term(average[k], numbers[k]);
  }
  for (; i < count; i += kLanes) own += term(average_of(rows[i]), rows[i].count);
  return own;
}

// `first` is the first slot with a row, `slots` all of them, `batch` their number.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4) stoker_pool_rows(uint64_t first, uint64_t slots, uint64_t batch) {
  STOKER_SHARED(Lanes, lanes);
  const Slot& slot = *reinterpret_cast<const Slot*>(first);
  const uint32_t thread = gpu::thread_index(), lane = thread % gpu::kWarp;
  const int64_t column = static_cast<int64_t>(gpu::block_index()) * kWarps + static_cast<int64_t>(thread / gpu::kWarp);
  const bool works = column < slot.columns;
  const auto* rows = reinterpret_cast<const Row*>(slot.table);
  const int64_t count = works ? slot.rows : 0;
  lanes.sum[thread] = slot.is_wide ? lane_of<double>(rows, count, column) : lane_of<float>(rows, count, column);
  for (uint32_t half = gpu::kWarp / 2; half > 0; half /= 2) {
    gpu::warp_barrier();
    if (lane < half) lanes.sum[thread] += lanes.sum[thread + half];
  }
  gpu::warp_barrier();
  const double average = averaged(lanes.sum[thread - lane], slot.left);
  if (!works) return;
  for (uint64_t r = lane; r < batch; r += gpu::kWarp) {
    const uint64_t out = reinterpret_cast<const Slot*>(slots)[r].out;
    if (out) reinterpret_cast<double*>(out)[column] = average;
  }
}

}  // namespace stoker::pool
