// SPDX-License-Identifier: Apache-2.0
// Projective and cubic sampling of bytes, bit for bit equal to Pillow's Image.transform(size, AFFINE or PERSPECTIVE, ...).
#pragma once
#include "base/tensor.hpp"

namespace stoker::warp {

enum class Sampling : int { Nearest = 0, Linear, Cubic };

// dst pixel (x, y), with X = x + .5 and Y = y + .5, shows the source point
//   ((m[0] X + m[1] Y + m[2]) / w,  (m[3] X + m[4] Y + m[5]) / w),  w = m[6] X + m[7] Y + 1,
// or without the division if not `projective`; pixel corners at the integers. src and dst: [H,W,C] of U8 with up to
// four channels and any strides; they must not overlap. Points outside of the source get fill[c].
//
// Interpolated values are truncated, as in Pillow. Cubic is its spline with a = -1, whose neighbours outside of the
// image are the nearest ones inside.
//
// Returns false, with dst untouched, for other types, more channels or a matrix that is not finite, and for Nearest if
// not `projective`: Pillow walks affine images in other ways, see warp.hpp.
bool project(const View& src, const double m[8], bool projective, Sampling sampling, const uint8_t* fill,
             const View& dst);

// Return whether project() supports these arguments; reads only shapes and types of the views.
bool can_project(const View& src, const double m[8], bool projective, Sampling sampling, const View& dst);

}  // namespace stoker::warp
