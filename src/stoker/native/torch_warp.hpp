// SPDX-License-Identifier: Apache-2.0
// Sampling of bytes or floats as torch's grid_sample does it on CPUs, bit for bit, with the grids of torchvision's tensor kernels.
#pragma once
#include "tensor.hpp"
#include "torch_warp_point.hpp"

namespace stoker::torch_warp {

// Nearest, or linear between the four neighbours; bytes are rounded half to even. src and dst: [H,W,C] of U8, or both of
// F32, up to three channels; src with any strides, dst with channels side by side. They must not overlap.
// Returns false, with dst untouched, for other types or an image without pixels.
bool sample(const View& src, const Grid& grid, bool linear, const Fill& fill, const View& dst);

}  // namespace stoker::torch_warp
