// SPDX-License-Identifier: Apache-2.0
// Minima or maxima of windows, along the rows and then down the columns.
#pragma once
#include "device/own_order.cuh"
#include "shared/border.hpp"

namespace stoker::own {

// Numbers: height and width of the window, its rows above and pixels before the position, the image's axes, the border
// mode, whether maxima are wanted. A row's scratch memory: the extremes of the rows' windows, as keys, in the order of
// the elements' numbers.
template <class Ports>
struct Extremes {
  using Keys = order::KeysOf<typename Ports::template At<0>>;
  using Key = typename Keys::Key;

  struct Window {
    int64_t height, width, top, left;
    Border border;
    bool largest;
    explicit Window(const Row& row) {
      height = static_cast<int64_t>(row.number(0));
      width = static_cast<int64_t>(row.number(1));
      top = static_cast<int64_t>(row.number(2));
      left = static_cast<int64_t>(row.number(3));
      border = static_cast<Border>(static_cast<int>(row.number(8)));
      largest = row.number(9) != 0;
    }
    Key best(Key a, Key b) const { return (a < b) == largest ? b : a; }
    Key neutral() const { return largest ? Key{0} : Keys::kAll; }
  };

  static void across(const Row& row, uint32_t block) {
    const Window window(row);
    const Image from(row, 0, 4);
    Key* const between = row.scratch<Key>();
    order::each_element(from, block, [&](int64_t number, const order::Place& at) {
      Key found = window.neutral();
      order::Place seen = at;
      for (int64_t j = 0; j < window.width; ++j) {
        seen.x = border_position(at.x - window.left + j, from.width, window.border);
        if (seen.x >= 0) found = window.best(found, Keys::load(order::address(from, seen)));
      }
      between[number] = found;
    });
  }

  static void down(const Row& row, uint32_t block) {
    const Window window(row);
    const Image to(row, 1, 4);
    const Key* const between = row.scratch<Key>();
    const int64_t line = to.width * (to.inner ? to.channels : 1);  // elements from a row to the next one
    order::each_element(to, block, [&](int64_t number, const order::Place& at) {
      Key found = window.neutral();
      for (int64_t i = 0; i < window.height; ++i) {
        const int64_t y = border_position(at.y - window.top + i, to.height, window.border);
        if (y >= 0) found = window.best(found, between[number + (y - at.y) * line]);
      }
      Keys::store(order::address(to, at), found);
    });
  }
};

}  // namespace stoker::own
