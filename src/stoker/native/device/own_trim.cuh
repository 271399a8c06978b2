// SPDX-License-Identifier: Apache-2.0
// `trim_silence`: the part of a signal between two samples that were found on the GPU.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: signal, first sample of the region, its number of samples, output, count. Numbers: samples to keep on both sides.
template <class Ports>
struct Trim {
  using Memory = typename Ports::template At<0>::Memory;
  static constexpr int64_t kElements = 2048;  // of a block; also in ops/audio/trim_silence.py

  static void copy(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &out = row.port(3);
    const auto number = [&](int port) { return int64_t{*reinterpret_cast<const int32_t*>(row.port(port).data)}; };
    const int64_t length = number(2), margin = length > 0 ? static_cast<int64_t>(row.number(0)) : 0;
    const int64_t begin = number(1) - margin, end = number(1) + length + margin;
    const int64_t first = begin > 0 ? begin : 0, last = end < x.shape[0] ? end : x.shape[0];
    if (block == 0 && gpu::thread_index() == 0)
      *reinterpret_cast<int32_t*>(row.port(4).data) = static_cast<int32_t>(last - first);
    const int64_t to = (block + int64_t{1}) * kElements < x.shape[0] ? (block + int64_t{1}) * kElements : x.shape[0];
    for (int64_t i = block * kElements + gpu::thread_index(); i < to; i += gpu::thread_count())
      if (i >= first && i < last)
        reinterpret_cast<Memory*>(out.data)[i - first] =
            *reinterpret_cast<const Memory*>(x.data + static_cast<uint64_t>(i * x.stride[0]));
  }
};

}  // namespace stoker::own
