// SPDX-License-Identifier: Apache-2.0
// Affine sampling, bit for bit equal to Pillow's Image.transform(size, AFFINE, data, NEAREST or BILINEAR, fillcolor=).
#pragma once
#include "base/tensor.hpp"

namespace stoker::warp {

// dst pixel (x, y) shows the source point
//   (m[0] (x+.5) + m[1] (y+.5) + m[2],  m[3] (x+.5) + m[4] (y+.5) + m[5])
// with pixel corners at the integers. src and dst: [H,W,C] of the same U8, U16, I16, I32 or F32 with any strides; they
// must not overlap. Points outside the source get `fill`, a value for each channel, `fill_step` apart (0: one for all),
// rounded and saturated to the type, or, without it, the nearest edge pixel.
//
// U8 interpolation truncates and F32 subtracts in float, as in Pillow; the other types interpolate in double, round
// half to even and saturate. Nearest keeps Pillow's three ways of walking (a scale, 16.16 fixed point, and double
// steps), since they do not pick the same pixels.
//
// Returns false, with dst untouched, for another rank or type, differing channel counts or a matrix that is not
// finite. An empty source fills the output with `fill` (zero without it).
bool affine(const View& src, const double m[6], bool linear, const double* fill, int64_t fill_step, const View& dst,
            Scratch& scratch);

// Whether affine() takes these; only shapes and types of the views are read.
bool can_sample(const View& src, const double m[6], const View& dst);

}  // namespace stoker::warp
