// SPDX-License-Identifier: Apache-2.0
// `preemphasis_filter`: differences of a signal and its delayed form.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: signal, output. Numbers: the coefficient, the border (kernels/signal.cpp: Before).
template <class Ports>
struct Preemphasis {
  static constexpr int64_t kElements = 2048;  // of a block; also in ops/audio/preemphasis_filter.py

  static void filter(const Row& row, uint32_t block) {
    const Port& x = row.port(0);
    const auto coefficient = static_cast<float>(row.number(0));
    const auto border = static_cast<int>(row.number(1));
    auto* y = reinterpret_cast<float*>(row.port(1).data);
    const auto at = [&](int64_t i) {
      return *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(i * x.stride[0]));
    };
    const int64_t n = x.shape[0], begin = block * kElements, end = begin + kElements < n ? begin + kElements : n;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const float before = i > 0 ? at(i - 1) : border == 1 ? 0.0f : at(border == 2 && n > 1 ? 1 : 0);
      y[i] = at(i) - before * coefficient;
    }
  }
};

}  // namespace stoker::own
