// SPDX-License-Identifier: Apache-2.0
// Shot noise. A block computes kElements elements.
#pragma once
#include "device/own.cuh"
#include "shared/poisson.hpp"

namespace stoker::own {

// Numbers: factor, and the two words that name the row's stream.
template <class Ports>
struct Shot {
  using Element = typename Ports::template At<0>;
  static constexpr int64_t kElements = 1024;  // also in ops/image/noise_shot.py

  static uint32_t word(double number) { return static_cast<uint32_t>(static_cast<int64_t>(number)); }

  static void draw(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &out = row.port(1);
    const double factor = row.number(0);
    const uint32_t key = word(row.number(1)), stream = word(row.number(2));
    constexpr int64_t kItem = sizeof(typename Element::Memory);
    const bool flat = is_contiguous(in, kItem) && is_contiguous(out, kItem);
    const int64_t count = extent_of(out, 0, static_cast<int>(out.rank));
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t from = flat ? i * kItem : offset_of(in, i), to = flat ? i * kItem : offset_of(out, i);
      const auto x = static_cast<double>(load<Element>(reinterpret_cast<const uint8_t*>(in.data) + from));
      const double noisy = poisson::shot(x, factor, static_cast<uint32_t>(i), key, stream);
      store<Element>(reinterpret_cast<uint8_t*>(out.data) + to, op::cast<Element>(noisy));
    }
  }
};

}  // namespace stoker::own
