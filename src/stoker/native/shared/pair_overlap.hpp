// SPDX-License-Identifier: Apache-2.0
// Overlaps of two boxes with sides along the axes, with the bits of torchvision's functions, for the CPU and for GPUs.
#pragma once
#include <cstdint>

#include "shared/xmath_more.hpp"

namespace stoker::detect {

enum class Overlap : int32_t { Iou = 0, Generalized = 1, Distance = 2, Complete = 3 };

template <class T>
struct Corners {
  T x0, y0, x1, y1;
  T area() const { return (x1 - x0) * (y1 - y0); }
};

// torch's max, min and clamp, which return a NaN operand.
template <class T>
inline T larger(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? b : a;
}
template <class T>
inline T smaller(T a, T b) {
  return a != a ? a : b != b ? b : b < a ? b : a;
}
template <class T>
inline T positive(T a) {
  return a < T{0} ? T{0} : a;
}

template <class T>
inline T square(T x) {
  return x * x;
}

template <class T>
inline T pair_overlap(const Corners<T>& a, const Corners<T>& b, Overlap kind) {
  const T w = positive(smaller(a.x1, b.x1) - larger(a.x0, b.x0));
  const T h = positive(smaller(a.y1, b.y1) - larger(a.y0, b.y0));
  const T both = w * h, all = a.area() + b.area() - both, iou = both / all;
  if (kind == Overlap::Iou) return iou;
  // The smallest box around both.
  const T W = positive(larger(a.x1, b.x1) - smaller(a.x0, b.x0));
  const T H = positive(larger(a.y1, b.y1) - smaller(a.y0, b.y0));
  if (kind == Overlap::Generalized) {
    const T around = W * H;
    return iou - (around - all) / around;
  }
  const T epsilon = static_cast<T>(1e-7);
  const T diagonal = square(W) + square(H) + epsilon;
  const T dx = (a.x0 + a.x1) / T{2} - (b.x0 + b.x1) / T{2}, dy = (a.y0 + a.y1) / T{2} - (b.y0 + b.y1) / T{2};
  const T distance = iou - (square(dx) + square(dy)) / diagonal;
  if (kind == Overlap::Distance) return distance;
  const auto angle = [](const Corners<T>& c) {
    return static_cast<T>(xm::atan(static_cast<double>((c.x1 - c.x0) / (c.y1 - c.y0))));
  };
  const T v = static_cast<T>(4 / (3.141592653589793 * 3.141592653589793)) * square(angle(a) - angle(b));
  const T alpha = v / (T{1} - iou + v + epsilon);
  return distance - alpha * v;
}

}  // namespace stoker::detect
