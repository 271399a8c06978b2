// SPDX-License-Identifier: Apache-2.0
// The image at coordinates that the operator's other two inputs have. A block computes kPixels pixels.
#pragma once
#include "device/own.cuh"
#include "shared/map_point.hpp"

namespace stoker::own {

// Numbers: value beyond the edges, the sampling, the image's axes, the border mode.
template <class Ports>
struct Map {
  using Element = typename Ports::template At<0>;
  using Value = typename Element::Memory;
  using S = mapped::Sum<Value>;
  static constexpr int64_t kPixels = 1024;  // also in ops/geometry/_map.py

  static float coordinate(const Port& map, int64_t f, int64_t y, int64_t x) {
    const int last = static_cast<int>(map.rank) - 1;
    const int64_t lead = last == 2 ? f * map.stride[0] : 0;
    return load<F32>(reinterpret_cast<const uint8_t*>(map.data) + lead + y * map.stride[last - 1] +
                     x * map.stride[last]);
  }

  static void sample(const Row& row, uint32_t block) {
    const Image from(row, 0, 2), to(row, 3, 2);
    const auto constant = op::cast<Element>(row.number(0));
    const auto sampling = static_cast<mapped::Sampling>(static_cast<int>(row.number(1)));
    const auto border = static_cast<Border>(static_cast<int>(row.number(6)));
    const int64_t plane = to.height * to.width, count = to.frames * plane;
    const int64_t begin = block * kPixels, end = begin + kPixels < count ? begin + kPixels : count;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t f = quotient(i, plane), y = quotient(i - f * plane, to.width), x = i - f * plane - y * to.width;
      const mapped::Place p(coordinate(row.port(1), f, y, x), coordinate(row.port(2), f, y, x), from.height, from.width,
                            border);
      for (int64_t c = 0; c < to.channels; ++c) {
        const uint8_t* source = from.data + f * from.frame + c * from.channel;
        uint8_t* target = to.data + f * to.frame + y * to.row + x * to.column + c * to.channel;
        const auto at = [&](int64_t line, int64_t column) {
          return load<Element>(source + line * from.row + column * from.column);
        };
        const auto wide = [&](int64_t line, int64_t column) { return static_cast<S>(at(line, column)); };
        auto value = constant;
        if (sampling == mapped::Sampling::Linear) {
          value = op::cast<Element>(mapped::linear<S>(p, static_cast<S>(constant), wide));
        } else if (sampling == mapped::Sampling::Cubic) {
          value = op::cast<Element>(mapped::cubic<S>(p, static_cast<S>(constant), wide));
        } else {
          value = p.at(p.y.index, p.x.index, constant, at);
        }
        store<Element>(target, value);
      }
    }
  }
};

}  // namespace stoker::own
