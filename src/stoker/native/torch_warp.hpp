// SPDX-License-Identifier: Apache-2.0
// Sampling of bytes as torch's grid_sample does it on CPUs, bit for bit, with the grids of torchvision's tensor kernels.
#pragma once
#include "tensor.hpp"

namespace stoker::torch_warp {

// Where an output pixel looks: -1 and 1 are the image's edges. Products are added by fused multiply-adds, as in torch's
// matrix products. With X, Y the pixel's centre from the middle of the output, or from its corner if `projective`:
//   x = X m[0] + Y m[1] + m[2], y = X m[3] + Y m[4] + m[5]; if projective, over (X m[6] + Y m[7] + 1), less 1.
struct Grid {
  float m[8];
  bool projective;
  const float* given = nullptr;  // instead: [height,width,2] of (x, y)
};

struct Fill {
  bool has;  // else what is outside counts as zeros
  float value[3];
};

// Nearest, or linear between the four neighbours, then rounded half to even. src and dst: [H,W,C] of U8, up to three
// channels; src with any strides, dst with channels side by side. They must not overlap.
// Returns false, with dst untouched, for other types or an image without pixels.
bool sample(const View& src, const Grid& grid, bool linear, const Fill& fill, const View& dst);

}  // namespace stoker::torch_warp
