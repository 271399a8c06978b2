// SPDX-License-Identifier: Apache-2.0
// Overlap of two boxes with sides along the axes, with the bits of torchvision's CPU kernel.
#pragma once

namespace stoker::detect {

// Intersection over union of boxes with the given corners and areas; NaN if both have no area. The comparisons have the
// operands in the order that std::max and std::min use, because of NaN.
template <class T>
inline T box_overlap(T ax0, T ay0, T ax1, T ay1, T a_area, T bx0, T by0, T bx1, T by1, T b_area) {
  const T left = ax0 < bx0 ? bx0 : ax0, top = ay0 < by0 ? by0 : ay0;
  const T right = bx1 < ax1 ? bx1 : ax1, bottom = by1 < ay1 ? by1 : ay1;
  T w = right - left, h = bottom - top;
  w = T{0} < w ? w : T{0};
  h = T{0} < h ? h : T{0};
  const T both = w * h;
  return both / (a_area + b_area - both);
}

}  // namespace stoker::detect
