// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor as elements of another type: a copy. A block moves kElements elements of the input.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

template <class Ports>
struct Retype {
  using Memory = typename Ports::template At<0>::Memory;
  static constexpr int64_t kElements = 2048;  // also in ops/geometry/retyped.py

  static void move(const Row& row, uint32_t block) {
    const Port& in = row.port(0);
    const int rank = static_cast<int>(in.rank);
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= in.shape[d];
    auto* out = reinterpret_cast<Memory*>(row.port(1).data);
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t left = i, from = 0;
      for (int d = rank - 1; d >= 0; --d) {
        from += left % in.shape[d] * in.stride[d];
        left /= in.shape[d];
      }
      out[i] = *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(from));
    }
  }
};

}  // namespace stoker::own
