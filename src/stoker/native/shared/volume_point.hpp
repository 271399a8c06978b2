// SPDX-License-Identifier: Apache-2.0
// Sampling of one point of a volume: the nearest element, or trilinear interpolation, with a constant or the nearest
// element beyond the faces. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cmath>
#include <cstdint>

namespace stoker::volume {

// Position along one axis, in elements; the first element's centre is at 0 for interpolation, its start at 0 for the
// nearest element. Positions far outside, and NaN, become ones whose neighbours are outside, too.
struct Along {
  int64_t index;
  double rest;
  int64_t extent;

  Along(double at, int64_t extent) : extent(extent) {
    const double most = static_cast<double>(extent) + 1.0;
    at = at > -2.0 ? (at < most ? at : most) : -2.0;
    const double down = std::floor(at);
    index = static_cast<int64_t>(down);
    rest = at - down;
  }
  bool has(int64_t i) const { return i >= 0 && i < extent; }
  int64_t nearest(int64_t i) const { return i < 0 ? 0 : i < extent ? i : extent - 1; }
};

struct Place {
  Along z, y, x;

  // Source of the output's element (z, y, x). `m` has three rows of four numbers for x, y and z.
  template <class Matrix>
  static Place of(const Matrix& m, int64_t z, int64_t y, int64_t x, bool linear, const int64_t extents[3]) {
    const double u = static_cast<double>(x) + 0.5, v = static_cast<double>(y) + 0.5, w = static_cast<double>(z) + 0.5;
    const double shift = linear ? 0.5 : 0.0;
    return {{m[8] * u + m[9] * v + m[10] * w + m[11] - shift, extents[0]},
            {m[4] * u + m[5] * v + m[6] * w + m[7] - shift, extents[1]},
            {m[0] * u + m[1] * v + m[2] * w + m[3] - shift, extents[2]}};
  }

  // Return what load(z, y, x) returns for an element; outside of the volume `fill`, or the nearest element.
  template <class S, class Load>
  S at(int64_t dz, int64_t dy, int64_t dx, bool has_fill, S fill, const Load& load) const {
    const int64_t k = z.index + dz, j = y.index + dy, i = x.index + dx;
    if (z.has(k) && y.has(j) && x.has(i)) return load(k, j, i);
    return has_fill ? fill : load(z.nearest(k), y.nearest(j), x.nearest(i));
  }
};

template <class S>
inline S between(S a, S b, S t) {
  return a + (b - a) * t;
}

template <class S, class Load>
inline S linear(const Place& p, bool has_fill, S fill, const Load& load) {
  const auto along = [&](int64_t dz, int64_t dy) {
    return between(p.at(dz, dy, 0, has_fill, fill, load), p.at(dz, dy, 1, has_fill, fill, load),
                   static_cast<S>(p.x.rest));
  };
  const auto face = [&](int64_t dz) { return between(along(dz, 0), along(dz, 1), static_cast<S>(p.y.rest)); };
  return between(face(0), face(1), static_cast<S>(p.z.rest));
}

}  // namespace stoker::volume
