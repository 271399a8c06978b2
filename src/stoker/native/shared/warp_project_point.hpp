// SPDX-License-Identifier: Apache-2.0
// Projective and cubic sampling of one point of an image of bytes. Plain C++ that compiles for the CPU and for a GPU.
// The order of operations is Pillow's.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stoker::warp {

// Memory layout of an image; strides are in bytes.
struct Bytes {
  const uint8_t* data;
  int64_t height, width;
  int64_t row, column, channel;

  const uint8_t* line(int64_t y) const { return data + std::clamp<int64_t>(y, 0, height - 1) * row; }
  int64_t across(int64_t x) const { return std::clamp<int64_t>(x, 0, width - 1) * column; }
};

// Source position of pixel (x, y) of the output, in whole pixels.
struct Point {
  double x, y;
  bool inside(const Bytes& src) const {
    return x >= 0 && x < static_cast<double>(src.width) && y >= 0 && y < static_cast<double>(src.height);
  }
};

// `xin`, `yin`: the pixel's centre.
template <bool kProjective, class Matrix>
inline Point point_at(const Matrix& m, double xin, double yin) {
  Point p{m[0] * xin + m[1] * yin + m[2], m[3] * xin + m[4] * yin + m[5]};
  if constexpr (kProjective) {
    const double w = m[6] * xin + m[7] * yin + 1;
    p.x /= w;
    p.y /= w;
  }
  return p;
}
template <bool kProjective, class Matrix>
inline Point point_of(const Matrix& m, int64_t x, int64_t y) {
  return point_at<kProjective>(m, static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
}

// Round down as Pillow does: truncation for values that are not negative.
inline int64_t whole(double v) { return v < 0 ? static_cast<int64_t>(std::floor(v)) : static_cast<int64_t>(v); }

// Interpolators of one point; `at(c)` returns the value of channel c.
struct NearestAt {
  NearestAt(const Bytes& src, Point p)
      : from(src.data + static_cast<int64_t>(p.y) * src.row + static_cast<int64_t>(p.x) * src.column),
        step(src.channel) {}
  uint8_t at(int64_t c) const { return from[c * step]; }
  const uint8_t* from;
  int64_t step;
};

struct LinearAt {
  LinearAt(const Bytes& src, Point p) : step(src.channel) {
    const int64_t left = whole(p.x - 0.5), top = whole(p.y - 0.5);
    dx = p.x - 0.5 - static_cast<double>(left);
    dy = p.y - 0.5 - static_cast<double>(top);
    a = src.across(left);
    b = src.across(left + 1);
    upper = src.line(top);
    lower = src.line(top + 1);
    below = top + 1 >= 0 && top + 1 < src.height;
  }
  uint8_t at(int64_t c) const {
    const int64_t k = c * step;
    const double v = between(upper, k), w = below ? between(lower, k) : v;
    return static_cast<uint8_t>(static_cast<int32_t>(v + (w - v) * dy));
  }

 private:
  double between(const uint8_t* p, int64_t k) const { return p[a + k] + static_cast<double>(p[b + k] - p[a + k]) * dx; }
  const uint8_t *upper, *lower;
  int64_t a, b, step;
  double dx, dy;
  bool below;
};

// `Offset` is the type of byte offsets; int32_t is enough for images below 2 GiB.
template <class Offset>
struct CubicOf {
  CubicOf(const Bytes& src, Point p) : data(src.data), step(static_cast<Offset>(src.channel)) {
    const int64_t left = whole(p.x - 0.5), top = whole(p.y - 0.5);
    dx = p.x - 0.5 - static_cast<double>(left);
    dy = p.y - 0.5 - static_cast<double>(top);
    for (int i = 0; i < 4; ++i) {
      column[i] = static_cast<Offset>(src.across(left - 1 + i));
      line[i] = static_cast<Offset>(src.line(top - 1 + i) - src.data);
      outside[i] = top - 1 + i < 0 || top - 1 + i >= src.height;
    }
  }
  uint8_t at(int64_t c) const {
    double v[4];
    const uint8_t* p = data + static_cast<Offset>(c) * step;
    for (int i = 0; i < 4; ++i) {
      Offset row = line[i];
#if defined(__CUDACC_RTC__)
      // The barrier keeps the compiler from computing the sums of all rows and columns before the loop over the
      // channels, which would need too many registers.
      if constexpr (sizeof(Offset) == 4) asm volatile("" : "+r"(row));
#endif
      // Pillow repeats the value of the line above here, not that of the nearest line.
      if (i > 0 && outside[i]) v[i] = v[i - 1];
      else v[i] = spline(value(p, row, 0), value(p, row, 1), value(p, row, 2), value(p, row, 3), dx);
    }
    const double y = spline(v[0], v[1], v[2], v[3], dy);
    return y <= 0 ? 0 : y >= 255 ? 255 : static_cast<uint8_t>(static_cast<int32_t>(y));
  }

 private:
  int value(const uint8_t* p, Offset row, int k) const { return p[row + column[k]]; }
  template <class T>
  static double spline(T a, T b, T c, T e, double d) {
    const double p1 = b, p2 = -a + c, p3 = 2 * (a - b) + c - e, p4 = -a + b - c + e;
    return p1 + d * (p2 + d * (p3 + d * p4));
  }
  const uint8_t* data;
  Offset line[4], column[4], step;
  double dx, dy;
  bool outside[4];
};
using CubicAt = CubicOf<int64_t>;

}  // namespace stoker::warp
