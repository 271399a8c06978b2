// SPDX-License-Identifier: Apache-2.0
// Border modes: the values beyond the edges of an image.
#pragma once
#include <algorithm>
#include <cstdint>

namespace stoker {

// For the elements abcd the modes give dcb|abcd|cba, cba|abcd|dcb, bcd|abcd|abc, aaa|abcd|ddd, and a constant. The
// Python side relies on the order of the enumerators (ops/geometry/_borders.py, frontends/torchvision/ir/recipe.py).
enum class Border : int { Reflect101 = 0, Reflect1001, Wrap, Clamp, Constant };

// Return the index of the element that position i shows, out of `size` > 0 elements; -1 means the constant.
template <class Int>
inline Int border_position(Int i, Int size, Border border) {
  if (i >= 0 && i < size) return i;
  switch (border) {
    case Border::Constant: return -1;
    case Border::Clamp: return std::clamp<Int>(i, 0, size - 1);
    case Border::Wrap: return (i % size + size) % size;
    case Border::Reflect1001: {
      const Int at = (i % (2 * size) + 2 * size) % (2 * size);
      return at < size ? at : 2 * size - 1 - at;
    }
    case Border::Reflect101: break;
  }
  if (size == 1) return 0;
  const Int period = 2 * size - 2, at = (i % period + period) % period;
  return at < size ? at : period - at;
}

}  // namespace stoker
