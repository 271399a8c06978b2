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

  // Determine the median bit by bit, as in filter/order.ipp.
  static void select(const Row& row, uint32_t block) {
    const auto height = static_cast<int64_t>(row.number(0)), width = static_cast<int64_t>(row.number(1));
    const Image from(row, 0, 2), to(row, 1, 2);
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
