// SPDX-License-Identifier: Apache-2.0
// `gather`: elements of the first axis by numbers that the CPU has checked, or by numbers of kept boxes, of which memory
// for more than there are is passed: elements past these are zero, so that kernels that follow run over numbers that
// are bounded by the data. A block copies kElements elements.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: data, numbers (int64), output.
template <class Ports>
struct Gather {
  using Memory = typename Ports::template At<0>::Memory;
  static constexpr int64_t kElements = 2048;  // also in ops/generic/gather.py

  static void copy(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &numbers = row.port(1), &out = row.port(2);
    int64_t inner = 1, count = 1;
    for (int d = 1; d < in.rank; ++d) inner *= in.shape[d];
    for (int d = 0; d < numbers.rank; ++d) count *= numbers.shape[d];
    const int64_t begin = block * kElements;
    const int64_t end = begin + kElements < count * inner ? begin + kElements : count * inner;
    for (int64_t e = begin + gpu::thread_index(); e < end; e += gpu::thread_count()) {
      int64_t number = e / inner, left = e - number * inner, place = 0;
      for (int d = static_cast<int>(numbers.rank) - 1; d >= 0; --d) {
        place += number % numbers.shape[d] * numbers.stride[d];
        number /= numbers.shape[d];
      }
      const int64_t from = *reinterpret_cast<const int64_t*>(reinterpret_cast<const uint8_t*>(numbers.data) + place);
      if (from < 0 || from >= in.shape[0]) {  // none but those past the numbers of kept boxes
        reinterpret_cast<Memory*>(out.data)[e] = Memory();
        continue;
      }
      int64_t at = from * in.stride[0];
      for (int d = static_cast<int>(in.rank) - 1; d > 0; --d) {
        at += left % in.shape[d] * in.stride[d];
        left /= in.shape[d];
      }
      reinterpret_cast<Memory*>(out.data)[e] = *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(at));
    }
  }
};

}  // namespace stoker::own
