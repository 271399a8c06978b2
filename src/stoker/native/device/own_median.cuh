// SPDX-License-Identifier: Apache-2.0
// Medians of windows.
#pragma once
#include "device/own_order.cuh"
#include "shared/border.hpp"

namespace stoker::own {

// Numbers: height and width of the window, the image's axes.
template <class Ports>
struct Median {
  using Keys = order::KeysOf<typename Ports::template At<0>>;
  using Key = typename Keys::Key;

  // Medians of small square windows, whose keys are read once and stay in registers.
  template <int side>
  static void select_small(const Image& from, const Image& to, uint32_t block) {
    order::each_element(to, block, [&](int64_t, const order::Place& at) {
      Key keys[side * side];
      const uint8_t* plane = from.data + at.f * from.frame + at.c * from.channel;
      STOKER_UNROLL for (int i = 0; i < side; ++i) {
        const int64_t y = border_position(at.y - side / 2 + i, from.height, Border::Clamp);
        STOKER_UNROLL for (int j = 0; j < side; ++j) {
          const int64_t x = border_position(at.x - side / 2 + j, from.width, Border::Clamp);
          keys[i * side + j] = Keys::load(plane + y * from.row + x * from.column);
        }
      }
      Key found = 0;
      for (Key bit = Keys::kTop; bit; bit = static_cast<Key>(bit >> 1)) {
        const auto tried = static_cast<Key>(found | bit);
        int count = 0;
        STOKER_UNROLL for (int k = 0; k < side * side; ++k) count += keys[k] >= tried;
        if (count > side * side / 2) found = tried;
      }
      Keys::store(order::address(to, at), found);
    });
  }

  // Determine the median bit by bit, as in filter/order.ipp.
  static void select(const Row& row, uint32_t block) {
    const auto height = static_cast<int64_t>(row.number(0)), width = static_cast<int64_t>(row.number(1));
    const Image from(row, 0, 2), to(row, 1, 2);
    if (height == 3 && width == 3) return select_small<3>(from, to, block);
    if (height == 5 && width == 5) return select_small<5>(from, to, block);
    order::each_element(to, block, [&](int64_t, const order::Place& at) {
      Key found = 0;
      for (Key bit = Keys::kTop; bit; bit = static_cast<Key>(bit >> 1)) {
        const auto tried = static_cast<Key>(found | bit);
        int64_t count = 0;
        order::Place seen = at;
        for (int64_t i = 0; i < height; ++i) {
          seen.y = border_position(at.y - height / 2 + i, from.height, Border::Clamp);
          for (int64_t j = 0; j < width; ++j) {
            seen.x = border_position(at.x - width / 2 + j, from.width, Border::Clamp);
            count += Keys::load(order::address(from, seen)) >= tried;
          }
        }
        if (count > height * width / 2) found = tried;
      }
      Keys::store(order::address(to, at), found);
    });
  }
};

}  // namespace stoker::own
