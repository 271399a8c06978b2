// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor as elements of another type: a copy. A block moves kElements elements of the input.
#pragma once
#include "device/copy_elements.cuh"

namespace stoker::own {

template <class Ports>
struct Retype {
  using Memory = typename Ports::template At<0>::Memory;
  static constexpr int64_t kElements = 16384;  // also in ops/geometry/retyped.py

  static void move(const Row& row, uint32_t block) {
    const Port& in = row.port(0);
    const int64_t count = extent_of(in, 0, static_cast<int>(in.rank)), begin = block * kElements;
    const int64_t end = begin + kElements < count ? begin + kElements : count;
    const auto* const from = reinterpret_cast<const uint8_t*>(in.data);
    auto* const out = reinterpret_cast<uint8_t*>(row.port(1).data);
    if (is_contiguous(in, sizeof(Memory))) {
      copy_elements<Memory>(from, out, begin, end, block_workers());
      return;
    }
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count())
      reinterpret_cast<Memory*>(out)[i] = *reinterpret_cast<const Memory*>(from + offset_of(in, i));
  }
};

}  // namespace stoker::own
