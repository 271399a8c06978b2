// SPDX-License-Identifier: Apache-2.0
// Overlap of two rotated boxes, in double.
#pragma once
#include "shared/xmath.hpp"

namespace stoker::detect {

struct RotatedBox {
  double x, y, width, height, cosine, sine, radius_squared;

  RotatedBox() = default;
  // The centre's x and y, width, height, degrees. Angles of both boxes turn the same way, whichever that is.
  explicit RotatedBox(const double b[5])
      : x(b[0]),
        y(b[1]),
        width(b[2]),
        height(b[3]),
        cosine(xm::cos_pi(b[4] / 180)),
        sine(xm::sin_pi(b[4] / 180)),
        radius_squared((b[2] * b[2] + b[3] * b[3]) / 4) {}
  double area() const { return width * height; }
};

// Common area: the corners of b in the frame of a, clipped at the four edges of a.
inline double common_area(const RotatedBox& a, const RotatedBox& b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  // Circles around the boxes that do not meet: (r + s)**2 <= 2 (r**2 + s**2).
  if (dx * dx + dy * dy > 2 * (a.radius_squared + b.radius_squared)) return 0;
  double px[8], py[8], qx[8], qy[8];
  const double cx = dx * a.cosine + dy * a.sine, cy = dy * a.cosine - dx * a.sine;
  const double c = b.cosine * a.cosine + b.sine * a.sine, s = b.sine * a.cosine - b.cosine * a.sine;
  int n = 4;
  for (int i = 0; i < 4; ++i) {
    const double u = (i == 0 || i == 3 ? -0.5 : 0.5) * b.width, v = (i < 2 ? -0.5 : 0.5) * b.height;
    px[i] = cx + u * c - v * s;
    py[i] = cy + u * s + v * c;
  }
  for (int edge = 0; edge < 4; ++edge) {
    const bool vertical = edge < 2;
    const double sign = edge & 1 ? -1 : 1, limit = (vertical ? a.width : a.height) / 2;
    const auto inside_by = [&](int i) { return limit - sign * (vertical ? px[i] : py[i]); };
    int m = 0;
    for (int i = 0; i < n; ++i) {
      const int next = i + 1 < n ? i + 1 : 0;
      const double d = inside_by(i), e = inside_by(next);
      if (d >= 0 && m < 8) {
        qx[m] = px[i];
        qy[m++] = py[i];
      }
      if ((d >= 0) != (e >= 0) && m < 8) {
        const double t = d / (d - e);
        qx[m] = px[i] + t * (px[next] - px[i]);
        qy[m++] = py[i] + t * (py[next] - py[i]);
      }
    }
    n = m;
    for (int i = 0; i < n; ++i) {
      px[i] = qx[i];
      py[i] = qy[i];
    }
  }
  double twice = 0;
  for (int i = 2; i < n; ++i) twice += (px[i - 1] - px[0]) * (py[i] - py[0]) - (px[i] - px[0]) * (py[i - 1] - py[0]);
  return twice > 0 ? twice / 2 : 0;
}

// Intersection over union; NaN if both boxes have no area.
inline double overlap_of(const RotatedBox& a, const RotatedBox& b) {
  const double both = common_area(a, b);
  return both / (a.area() + b.area() - both);
}

}  // namespace stoker::detect
