// SPDX-License-Identifier: Apache-2.0
// Affine sampling of one point. Plain C++ that compiles for the CPU and for a GPU. The order of operations is Pillow's.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shared/xmath.hpp"

namespace stoker::warp {

template <class T>
inline T to_type(double v) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(v);
  } else {
    if (v != v) return 0;
    v = std::min(std::max(v, double{std::numeric_limits<T>::min()}), double{std::numeric_limits<T>::max()});
    return static_cast<T>(static_cast<int64_t>(xm::round_even(v)));
  }
}

// Pillow casts an interpolated value to a byte, which truncates it.
template <class T>
inline T from_interpolated(double v) {
  if constexpr (std::is_same_v<T, uint8_t>) return static_cast<uint8_t>(static_cast<int32_t>(v));
  return to_type<T>(v);
}

// ---- nearest: the pixel under a coordinate; -1 means outside (or, when clamping, does not occur) ----

inline int32_t index_of(double v, int64_t size, bool clamp) {
  if (clamp) return v > 0.0 ? static_cast<int32_t>(std::min(v, static_cast<double>(size - 1))) : 0;
  return v >= 0.0 && v < static_cast<double>(size) ? static_cast<int32_t>(v) : -1;
}

inline int32_t index_of(int32_t fixed, int64_t size, bool clamp) {
  const int64_t i = fixed >> 16;
  if (clamp) return static_cast<int32_t>(std::clamp<int64_t>(i, 0, size - 1));
  return i >= 0 && i < size ? static_cast<int32_t>(i) : -1;
}

inline uint32_t to_fixed(double v) {
  return static_cast<uint32_t>(static_cast<int64_t>(std::floor(v * 65536.0 + 0.5)));
}

// Return whether nearest sampling walks in 16.16 fixed point: Pillow's own bound, tested at the corners of the output.
inline bool fits_fixed(const double m[6], int64_t width, int64_t height) {
  for (int corner = 0; corner < 4; ++corner) {
    const auto dx = static_cast<double>(corner & 1 ? width : 0), dy = static_cast<double>(corner & 2 ? height : 0);
    if (!(std::fabs(dx * m[0] + dy * m[1] + m[2]) < 32768.0)) return false;
    if (!(std::fabs(dx * m[3] + dy * m[4] + m[5]) < 32768.0)) return false;
  }
  return true;
}

// ---- linear ----

// Source coordinate along one output row. Rounding is monotone, so the computed coordinate is monotone too.
struct Line {
  double step, across, offset, limit;
  double at(int64_t x) const { return step * (static_cast<double>(x) + 0.5) + across + offset; }
};

// The two neighbours along one axis as byte offsets, and the weight of the second.
struct Neighbours {
  int64_t a, b;
  double weight;
};

inline Neighbours neighbours(double v, double limit, int64_t last, int64_t stride) {
  v = v > 0.0 ? (v < limit ? v : limit) : 0.0;  // no effect inside of the image; maps NaN to 0
  v -= 0.5;
  const int64_t i = v < 0.0 ? -1 : static_cast<int64_t>(v);
  return {std::max<int64_t>(i, 0) * stride, std::min(i + 1, last) * stride, v - static_cast<double>(i)};
}

template <class T>
inline double lerp(T a, T b, double t) {
  if constexpr (std::is_same_v<T, float>) return a + static_cast<double>(b - a) * t;
  return static_cast<double>(a) + (static_cast<double>(b) - static_cast<double>(a)) * t;
}

}  // namespace stoker::warp
