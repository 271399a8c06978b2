// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device/block_scan.cuh"
#include "device/own.cuh"

namespace stoker::own {

// Number: the threshold. Ports: values, kept values, count.
template <class Ports>
struct KeepAbove {
  using Sums = Array<uint32_t, gpu::kMaxWarps>;

  static void keep(const Row& row, uint32_t) {
    STOKER_SHARED(Sums, sums);
    const Port &in = row.port(0), &out = row.port(1);  // out.shape[0]: the upper bound
    const auto threshold = static_cast<float>(row.number(0));
    int64_t count = 0;
    for (int64_t first = 0; first < in.shape[0]; first += gpu::thread_count()) {
      const int64_t i = first + gpu::thread_index();
      const bool there = i < in.shape[0];
      const float x = there ? *reinterpret_cast<const float*>(in.data + static_cast<uint64_t>(i * in.stride[0])) : 0.0f;
      const bool kept = there && x > threshold;
      uint32_t total = 0;
      const int64_t at = count + gpu::inclusive_sum(kept ? 1 : 0, &sums[0], total) - 1;
      if (kept && at < out.shape[0]) reinterpret_cast<float*>(out.data)[at] = x;
      count += total;
    }
    if (gpu::thread_index() == 0) *reinterpret_cast<int32_t*>(row.port(2).data) = static_cast<int32_t>(count);
  }
};

}  // namespace stoker::own
