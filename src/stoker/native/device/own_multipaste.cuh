// SPDX-License-Identifier: Apache-2.0
// `multi_paste`: each thread finds the last region that covers an element. A block writes kElements elements.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: images, canvas. Numbers: the value outside of all regions, six numbers of each region.
template <class Ports, int kRegions>
struct MultiPaste {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  static constexpr int64_t kElements = 2048;  // also in ops/geometry/multi_paste.py

  static void paste(const Row& row, uint32_t block) {
    const Port& out = row.port(kRegions);
    const auto axis = static_cast<int>(out.rank) - 3;
    const int64_t height = out.shape[axis], width = out.shape[axis + 1], channels = out.shape[axis + 2];
    const int64_t count = (axis ? out.shape[0] : 1) * height * width * channels, begin = block * kElements;
    const int64_t end = begin + kElements < count ? begin + kElements : count;
    for (int64_t e = begin + gpu::thread_index(); e < end; e += gpu::thread_count()) {
      const int64_t channel = e % channels, pixel = e / channels;
      const int64_t x = pixel % width, y = pixel / width % height, frame = pixel / width / height;
      auto* to = reinterpret_cast<uint8_t*>(out.data) + e * static_cast<int64_t>(sizeof(Memory));
      bool covered = false;
      for (int i = kRegions - 1; i >= 0 && !covered; --i) {
        const auto number = [&](int k) { return static_cast<int64_t>(row.number(1 + 6 * i + k)); };
        const int64_t from_y = y - number(4), from_x = x - number(5);
        if (from_y < 0 || from_x < 0 || from_y >= number(2) || from_x >= number(3)) continue;
        const Port& in = row.port(i);
        const int64_t at = (axis ? frame * in.stride[0] : 0) + (number(0) + from_y) * in.stride[axis] +
                           (number(1) + from_x) * in.stride[axis + 1] + channel * in.stride[axis + 2];
        *reinterpret_cast<Memory*>(to) = *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(at));
        covered = true;
      }
      if (!covered) store<Element>(to, op::cast<Element>(row.number(0)));
    }
  }
};

}  // namespace stoker::own
