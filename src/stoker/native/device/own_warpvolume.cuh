// SPDX-License-Identifier: Apache-2.0
// A volume through an affine matrix. A block computes kElements elements.
#pragma once
#include "device/own.cuh"
#include "shared/map_point.hpp"
#include "shared/volume_point.hpp"

namespace stoker::own {

// Numbers: value outside of the volume, whether values are interpolated, whether the value is used, then the volume's
// axes F, D, H, W and C.
template <class Ports>
struct WarpVolume {
  using Element = typename Ports::template At<0>;
  using S = mapped::Sum<typename Element::Memory>;
  static constexpr int64_t kElements = 1024;  // also in ops/geometry/_warp_volume.py

  struct Axes {
    int64_t extent[5], stride[5];
    uint8_t* data;

    Axes(const Row& row, const Port& port) : data(reinterpret_cast<uint8_t*>(port.data)) {
      for (int i = 0; i < 5; ++i) {
        const auto axis = static_cast<int>(row.number(3 + i));
        extent[i] = axis < 0 ? 1 : port.shape[axis];
        stride[i] = axis < 0 ? 0 : port.stride[axis];
      }
    }
  };

  struct Numbers {
    const uint8_t* data;
    int64_t stride;
    double operator[](int i) const { return load<F64>(data + i * stride); }
  };

  static void sample(const Row& row, uint32_t block) {
    const Port& port = row.port(1);
    const Axes from(row, row.port(0)), to(row, row.port(2));
    const auto constant = op::cast<Element>(row.number(0));
    const bool linear = row.number(1) != 0, has_fill = row.number(2) != 0;
    const int last = static_cast<int>(port.rank) - 1;
    int64_t count = 1;
    for (int i = 0; i < 5; ++i) count *= to.extent[i];
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    for (int64_t n = begin + gpu::thread_index(); n < end; n += gpu::thread_count()) {
      int64_t at[5], left = n, target = 0;
      for (int i = 4; i >= 0; --i) {
        at[i] = left % to.extent[i];
        left /= to.extent[i];
        target += at[i] * to.stride[i];
      }
      const Numbers m{reinterpret_cast<const uint8_t*>(port.data) + (last ? at[0] * port.stride[0] : 0),
                      port.stride[last]};
      const auto place = volume::Place::of(m, at[1], at[2], at[3], linear, &from.extent[1]);
      const uint8_t* source = from.data + at[0] * from.stride[0] + at[4] * from.stride[4];
      const auto take = [&](int64_t k, int64_t j, int64_t i) {
        return load<Element>(source + k * from.stride[1] + j * from.stride[2] + i * from.stride[3]);
      };
      auto value = constant;
      if (linear) {
        const auto wide = [&](int64_t k, int64_t j, int64_t i) { return static_cast<S>(take(k, j, i)); };
        value = op::cast<Element>(volume::linear<S>(place, has_fill, static_cast<S>(constant), wide));
      } else {
        value = place.at(0, 0, 0, has_fill, constant, take);
      }
      store<Element>(to.data + target, value);
    }
  }
};

}  // namespace stoker::own
