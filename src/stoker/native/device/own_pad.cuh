// SPDX-License-Identifier: Apache-2.0
// A tensor at the start of a larger one that is filled with a number. A block writes kElements elements.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Numbers: the number.
template <class Ports>
struct Pad {
  using Element = typename Ports::template At<0>;
  static constexpr int64_t kElements = 2048;  // also in ops/geometry/padded.py

  static void fill(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &out = row.port(1);
    const auto number = op::cast<Element>(row.number(0));
    const int rank = static_cast<int>(in.rank);
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= out.shape[d];
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t left = i, from = 0, to = 0;
      bool inside = true;
      for (int d = rank - 1; d >= 0; --d) {
        const int64_t at = left % out.shape[d];
        left /= out.shape[d];
        inside = inside && at < in.shape[d];
        from += at * in.stride[d];
        to += at * out.stride[d];
      }
      auto* target = reinterpret_cast<uint8_t*>(out.data) + to;
      using Memory = typename Element::Memory;
      if (inside)
        *reinterpret_cast<Memory*>(target) = *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(from));
      else store<Element>(target, number);
    }
  }
};

}  // namespace stoker::own
