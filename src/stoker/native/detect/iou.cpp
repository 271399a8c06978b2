// SPDX-License-Identifier: Apache-2.0
#include "detect/iou.hpp"

#include "detect/columns.hpp"
#include "shared/rotated_box.hpp"
#include "shared/xmath_more.hpp"

namespace stoker::detect {

namespace {

// torch's max, min and clamp, which return a NaN operand.
template <class T>
T larger(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? b : a;
}
template <class T>
T smaller(T a, T b) {
  return a != a ? a : b != b ? b : b < a ? b : a;
}
template <class T>
T positive(T a) {
  return a < T{0} ? T{0} : a;
}

template <class T>
struct Corners {
  T x0, y0, x1, y1;
  Corners(const View& v, int64_t i)
      : x0(element<T>(v, i, 0)), y0(element<T>(v, i, 1)), x1(element<T>(v, i, 2)), y1(element<T>(v, i, 3)) {}
  T area() const { return (x1 - x0) * (y1 - y0); }
};

template <class T>
T square(T x) {
  return x * x;
}

template <class T>
T overlap(const Corners<T>& a, const Corners<T>& b, Overlap kind) {
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

template <class T>
void fill(const View& a, const View& b, Overlap kind, const View& out) {
  auto* to = reinterpret_cast<T*>(out.data);
  for (int64_t i = 0; i < a.shape[0]; ++i) {
    const Corners<T> one(a, i);
    for (int64_t j = 0; j < b.shape[0]; ++j) *to++ = overlap(one, Corners<T>(b, j), kind);
  }
}

template <class T>
RotatedBox rotated(const View& v, int64_t i) {
  double numbers[5];
  for (int k = 0; k < 5; ++k) numbers[k] = static_cast<double>(element<T>(v, i, k));
  return RotatedBox(numbers);
}

template <class T>
void fill_rotated(const View& a, const View& b, const View& out) {
  auto* const to = reinterpret_cast<T*>(out.data);
  const int64_t n = a.shape[0], m = b.shape[0];
  for (int64_t j = 0; j < m; ++j) {
    const RotatedBox other = rotated<T>(b, j);
    for (int64_t i = 0; i < n; ++i) to[i * m + j] = static_cast<T>(overlap_of(rotated<T>(a, i), other));
  }
}

}  // namespace

void overlaps(const View& a, const View& b, Overlap kind, const View& out) {
  if (a.dtype == DType::F64) fill<double>(a, b, kind, out);
  else fill<float>(a, b, kind, out);
}

void overlaps_rotated(const View& a, const View& b, const View& out) {
  if (a.dtype == DType::F64) fill_rotated<double>(a, b, out);
  else fill_rotated<float>(a, b, out);
}

}  // namespace stoker::detect
