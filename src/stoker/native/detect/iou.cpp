// SPDX-License-Identifier: Apache-2.0
#include "detect/iou.hpp"

#include "detect/columns.hpp"
#include "shared/rotated_box.hpp"

namespace stoker::detect {

namespace {

template <class T>
Corners<T> corners(const View& v, int64_t i) {
  return {element<T>(v, i, 0), element<T>(v, i, 1), element<T>(v, i, 2), element<T>(v, i, 3)};
}

template <class T>
void fill(const View& a, const View& b, Overlap kind, const View& out) {
  auto* to = reinterpret_cast<T*>(out.data);
  for (int64_t i = 0; i < a.shape[0]; ++i) {
    const Corners<T> one = corners<T>(a, i);
    for (int64_t j = 0; j < b.shape[0]; ++j) *to++ = pair_overlap(one, corners<T>(b, j), kind);
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
