// SPDX-License-Identifier: Apache-2.0
// Sampling of one point of an image at any coordinates: the nearest element, or linear interpolation with a constant
// beyond the edges. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace stoker::mapped {

// Type of interpolated values: float is exact for 16 bits.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, int32_t>, double, float>;

// Whole part of a coordinate, and the rest. A coordinate so far outside that no element is near it, or NaN, gives -2.
struct Whole {
  int64_t index;
  float rest;

  Whole(float at, int64_t extent) {
    const bool near = at > -2.0f && at < static_cast<float>(extent) + 1.0f;
    const float down = std::floor(near ? at : -2.0f);
    index = static_cast<int64_t>(down);
    rest = near ? at - down : 0.0f;
  }
};

// Where a point lies in an image of `height` times `width` elements. Coordinate 0 is the first element; the nearest
// element is the one at the whole parts.
struct Place {
  Whole y, x;
  int64_t height, width;

  Place(float at_y, float at_x, int64_t height, int64_t width)
      : y(at_y, height), x(at_x, width), height(height), width(width) {}
  bool has(int64_t row, int64_t column) const { return row >= 0 && row < height && column >= 0 && column < width; }
};

// Interpolate between four elements; load(row, column) returns one as S.
template <class S, class Load>
inline S linear(const Place& p, S fill, const Load& load) {
  const auto at = [&](int64_t row, int64_t column) { return p.has(row, column) ? load(row, column) : fill; };
  const S a = at(p.y.index, p.x.index), b = at(p.y.index, p.x.index + 1);
  const S c = at(p.y.index + 1, p.x.index), d = at(p.y.index + 1, p.x.index + 1);
  const auto across = static_cast<S>(p.x.rest), down = static_cast<S>(p.y.rest);
  const S upper = a + (b - a) * across, lower = c + (d - c) * across;
  return upper + (lower - upper) * down;
}

}  // namespace stoker::mapped
