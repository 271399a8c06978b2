// SPDX-License-Identifier: Apache-2.0
// Sampling of bytes or floats as in torch's grid_sample on CPUs, bit for bit, with the grids of torchvision's tensor
// kernels.
#pragma once
#include "base/tensor.hpp"
#include "shared/torch_warp_point.hpp"

namespace stoker::torch_warp {

// Nearest, or linear between the four neighbours; bytes are rounded half to even. src and dst: [H,W,C] of U8, or both
// of F32, with up to three channels; src with any strides, dst with contiguous channels. They must not overlap. Return
// false, with dst untouched, for other types or an image without pixels.
bool sample(const View& src, const Grid& grid, bool linear, const Fill& fill, const View& dst);

}  // namespace stoker::torch_warp
