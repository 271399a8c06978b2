// SPDX-License-Identifier: Apache-2.0
// Conversion of a plan's doubles to integers. Users' expressions may give any value, and converting a double that does
// not fit is undefined behaviour.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace stoker {

// Truncate and clamp to [least, most]; NaN gives `least`.
template <class Int>
constexpr Int saturated(double x, Int least = std::numeric_limits<Int>::min(),
                        Int most = std::numeric_limits<Int>::max()) {
  if (!(x > static_cast<double>(least))) return least;
  return x < static_cast<double>(most) ? static_cast<Int>(x) : most;
}

// Convert to int64, or to uint64 with its bits stored in an int64.
constexpr int64_t either_int64(double x) {
  return x >= 0x1p63 ? static_cast<int64_t>(saturated<uint64_t>(x)) : saturated<int64_t>(x);
}

// Bounds for positions and sizes of windows. No image is that large, sums of two such numbers fit into 32 bits, and a
// window beyond these bounds is outside of its image.
constexpr int32_t kFar = 1 << 28;
constexpr int32_t position_of(double x) { return saturated<int32_t>(x, -kFar, kFar); }
constexpr int32_t size_within(int64_t n) { return static_cast<int32_t>(std::clamp<int64_t>(n, 0, kFar)); }

// The same for tensors.
constexpr int64_t kFarApart = int64_t{1} << 40;
constexpr int64_t offset_of(double x) { return saturated<int64_t>(x, -kFarApart, kFarApart); }

}  // namespace stoker
