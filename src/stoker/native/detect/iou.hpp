// SPDX-License-Identifier: Apache-2.0
// Overlaps of all pairs of boxes.
#pragma once
#include "base/tensor.hpp"
#include "shared/pair_overlap.hpp"

namespace stoker::detect {

// out[i, j]: the overlap of box i of `a` and box j of `b`: (N, 4) and (M, 4), x0 y0 x1 y1, of F32 or F64 with any
// strides. `out` is contiguous and of their type. The first three have the bits of torchvision's functions; the complete
// one computes its two arc tangents in double.
void overlaps(const View& a, const View& b, Overlap kind, const View& out);

// The same for rotated boxes (nms.hpp), only Overlap::Iou; computed in double.
void overlaps_rotated(const View& a, const View& b, const View& out);

}  // namespace stoker::detect
