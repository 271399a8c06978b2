// SPDX-License-Identifier: Apache-2.0
// Sampling of one point of an image at any coordinates: the nearest element, or linear or cubic interpolation, with a
// constant or a border mode beyond the edges. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "shared/border.hpp"

namespace stoker::mapped {

enum class Sampling : int { Nearest = 0, Linear, Cubic };

// Type of interpolated values: float is exact for 16 bits.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, int32_t>, double, float>;

// Whole part of a coordinate, and the rest. A coordinate so far outside that no element is near it, or NaN, gives -2. A
// border mode shows elements at any distance; all distances from almost 2^24 on count as one.
struct Whole {
  int32_t index;
  float rest;

  Whole(float at, int32_t extent, Border border) {
    constexpr float kFar = 16777214.0f;  // one more is a float, too
    if (border != Border::Constant && at == at) at = at > kFar ? kFar : at < -kFar ? -kFar : at;
    const float last = border == Border::Constant ? static_cast<float>(extent) : kFar;
    const bool near = at > (border == Border::Constant ? -2.0f : -2.0f * kFar) && at < last + 1.0f;
    const float down = std::floor(near ? at : -2.0f);
    index = static_cast<int32_t>(down);
    rest = near ? at - down : 0.0f;
  }
};

// Where a point lies in an image of `height` times `width` elements, up to 2^24 each. Coordinate 0 is the first element; the nearest
// element is the one at the whole parts.
struct Place {
  Whole y, x;
  int32_t height, width;
  Border border;

  Place(float at_y, float at_x, int32_t height, int32_t width, Border border)
      : y(at_y, height, border), x(at_x, width, border), height(height), width(width), border(border) {}
  bool has(int32_t row, int32_t column) const { return row >= 0 && row < height && column >= 0 && column < width; }

  // Return what load(row, column) returns for the element that the border mode shows there, or `fill`.
  template <class S, class Load>
  S at(int32_t row, int32_t column, S fill, const Load& load) const {
    if (has(row, column)) return load(row, column);
    if (border == Border::Constant) return fill;
    return load(border_position(row, height, border), border_position(column, width, border));
  }
};

// Interpolate between a and b above c and d.
template <class S>
inline S linear_between(S a, S b, S c, S d, S across, S down) {
  const S upper = a + (b - a) * across, lower = c + (d - c) * across;
  return upper + (lower - upper) * down;
}

// Interpolate between four elements; load(row, column) returns one as S.
template <class S, class Load>
inline S linear(const Place& p, S fill, const Load& load) {
  const auto at = [&](int32_t row, int32_t column) { return p.at(row, column, fill, load); };
  const S a = at(p.y.index, p.x.index), b = at(p.y.index, p.x.index + 1);
  const S c = at(p.y.index + 1, p.x.index), d = at(p.y.index + 1, p.x.index + 1);
  return linear_between(a, b, c, d, static_cast<S>(p.x.rest), static_cast<S>(p.y.rest));
}

// Cubic convolution between b and c, with the coefficient -3/4 that OpenCV and DALI use.
template <class S>
inline S cubic_between(S a, S b, S c, S d, S t) {
  constexpr S kA{0.75};
  const S third = S{1.25} * (b - c) + kA * (d - a), second = S{1.5} * (a + c) - S{2.25} * b - kA * d;
  return b + t * (kA * (c - a) + t * (second + t * third));
}

// Interpolate between sixteen elements.
template <class S, class Load>
inline S cubic(const Place& p, S fill, const Load& load) {
  S line[4];
  const auto across = static_cast<S>(p.x.rest), down = static_cast<S>(p.y.rest);
  for (int32_t k = 0; k < 4; ++k) {
    const auto at = [&](int32_t column) { return p.at(p.y.index + k - 1, p.x.index + column, fill, load); };
    line[k] = cubic_between(at(-1), at(0), at(1), at(2), across);
  }
  return cubic_between(line[0], line[1], line[2], line[3], down);
}

}  // namespace stoker::mapped
