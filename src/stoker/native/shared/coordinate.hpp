// SPDX-License-Identifier: Apache-2.0
// Coordinates as inputs of pixel programs. A coordinate's port has no memory: the port's address is the coordinate
// itself. The address follows the view's strides from lane to lane as for any input, so merging, reversing and
// transposing axes change coordinates in the same way as elements.
#pragma once
#include <cstdint>

namespace stoker {

// The address of coordinate 0. Not null, so that no pointer is computed from a null pointer.
constexpr uint64_t kCoordinateOrigin = 1 << 16;

template <class Byte>
inline int32_t coordinate_at(const Byte* at) {
  return static_cast<int32_t>(reinterpret_cast<uint64_t>(at) - kCoordinateOrigin);
}

}  // namespace stoker
