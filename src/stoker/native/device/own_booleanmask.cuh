// SPDX-License-Identifier: Apache-2.0
// `boolean_mask`: places of the kept elements by one block per row, then the elements by all blocks.
#pragma once
#include "device/block_scan.cuh"
#include "device/own.cuh"

namespace stoker::own {

// Ports: data, mask, kept elements, count. A row's memory: the place of each element of the first axis, or kDropped.
template <class Ports>
struct BooleanMask {
  using Memory = typename Ports::template At<0>::Memory;
  using Sums = Array<uint32_t, gpu::kMaxWarps>;
  static constexpr uint32_t kDropped = ~uint32_t{0};
  static constexpr int64_t kChunk = 2048;  // elements of a block that copies; also in ops/generic/boolean_mask.py

  static void place(const Row& row, uint32_t) {
    STOKER_SHARED(Sums, sums);
    const Port& mask = row.port(1);
    auto* places = row.scratch<uint32_t>();
    uint32_t kept = 0;
    for (int64_t first = 0; first < mask.shape[0]; first += gpu::thread_count()) {
      const int64_t i = first + gpu::thread_index();
      const bool keep = i < mask.shape[0] && reinterpret_cast<const uint8_t*>(mask.data)[i * mask.stride[0]] != 0;
      uint32_t total = 0;
      const uint32_t sum = gpu::inclusive_sum(keep ? 1 : 0, &sums[0], total);
      if (i < mask.shape[0]) places[i] = keep ? kept + sum - 1 : kDropped;
      kept += total;
    }
    if (gpu::thread_index() == 0) *reinterpret_cast<int32_t*>(row.port(3).data) = static_cast<int32_t>(kept);
  }

  static void copy(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &out = row.port(2);
    const auto* places = row.scratch<uint32_t>();
    int64_t inner = 1;
    for (int d = 1; d < in.rank; ++d) inner *= in.shape[d];
    const int64_t elements = in.shape[0] * inner, begin = block * kChunk;
    const int64_t end = begin + kChunk < elements ? begin + kChunk : elements;
    for (int64_t e = begin + gpu::thread_index(); e < end; e += gpu::thread_count()) {
      const int64_t i = e / inner;
      const uint32_t place = places[i];
      if (place >= out.shape[0]) continue;  // dropped, or past the bound, which the run loop refuses
      int64_t at = i * in.stride[0], left = e - i * inner;
      for (int d = static_cast<int>(in.rank) - 1; d > 0; --d) {
        at += left % in.shape[d] * in.stride[d];
        left /= in.shape[d];
      }
      const int64_t to = place * inner + (e - i * inner);
      reinterpret_cast<Memory*>(out.data)[to] = *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(at));
    }
  }
};

}  // namespace stoker::own
