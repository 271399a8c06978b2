// SPDX-License-Identifier: Apache-2.0
// `fill_regions`: a copy, of which a block writes kElements elements, and then the regions, each by kBlocks blocks.
// Regions that lie over each other have the same values, so that their order does not matter.
#pragma once
#include "device/copy_elements.cuh"

namespace stoker::own {

// Ports: data, bounds of the regions [N,rank,2], fill values [1 or frames,K], output. Numbers: the axis of the channels,
// -1: none.
template <class Ports>
struct FillRegions {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  static constexpr int64_t kElements = 16384;  // also in ops/image/_regions.py
  static constexpr uint32_t kBlocks = 8;       // also in ops/image/_regions.py

  static void copy(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &out = row.port(3);
    const int rank = static_cast<int>(out.rank);
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= out.shape[d];
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    bool contiguous = true;
    int64_t stride = sizeof(Memory);
    for (int d = rank - 1; d >= 0; --d) {
      contiguous = contiguous && (out.shape[d] == 1 || (in.stride[d] == stride && out.stride[d] == stride));
      stride *= out.shape[d];
    }
    if (contiguous) {
      copy_elements<Memory>(reinterpret_cast<const uint8_t*>(in.data), reinterpret_cast<uint8_t*>(out.data), begin, end,
                            block_workers());
      return;
    }
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t left = i, from = 0, to = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const int64_t above = quotient(left, out.shape[d]), at = left - above * out.shape[d];
        left = above;
        from += at * in.stride[d];
        to += at * out.stride[d];
      }
      *reinterpret_cast<Memory*>(out.data + static_cast<uint64_t>(to)) =
          *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(from));
    }
  }

  static void fill(const Row& row, uint32_t block) {
    const Port &table = row.port(1), &fills = row.port(2), &out = row.port(3);
    const int rank = static_cast<int>(out.rank), channels = static_cast<int>(row.number(0));
    const int64_t region = block / kBlocks;
    if (region >= table.shape[0]) return;
    const auto bound = [&](int axis, int64_t which) {
      const int64_t at = region * table.stride[0] + axis * table.stride[1] + which * table.stride[2];
      const auto x = *reinterpret_cast<const int64_t*>(table.data + static_cast<uint64_t>(at));
      return x < 0 ? 0 : x < out.shape[axis] ? x : out.shape[axis];
    };
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) {
      const int64_t extent = bound(d, 1) - bound(d, 0);
      count *= extent > 0 ? extent : 0;
    }
    const int64_t group = fills.shape[0] > 1 ? region / (table.shape[0] / fills.shape[0]) : 0;
    const int64_t step = static_cast<int64_t>(kBlocks) * gpu::thread_count();
    for (int64_t i = (block % kBlocks) * static_cast<int64_t>(gpu::thread_count()) + gpu::thread_index(); i < count;
         i += step) {
      int64_t left = i, to = 0, channel = 0;
      for (int d = rank - 1; d >= 0; --d) {
        const int64_t start = bound(d, 0), extent = bound(d, 1) - start, above = quotient(left, extent);
        const int64_t at = start + left - above * extent;
        left = above;
        to += at * out.stride[d];
        if (d == channels && fills.shape[1] > 1) channel = at;
      }
      const int64_t at = group * fills.stride[0] + channel * fills.stride[1];
      const auto value = *reinterpret_cast<const double*>(fills.data + static_cast<uint64_t>(at));
      store<Element>(reinterpret_cast<uint8_t*>(out.data + static_cast<uint64_t>(to)), op::cast<Element>(value));
    }
  }
};

}  // namespace stoker::own
