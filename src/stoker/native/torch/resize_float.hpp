// SPDX-License-Identifier: Apache-2.0
// Resizing of floats as in torch, bit for bit, and of bytes by way of floats, as in torchvision's first generation:
// interpolate(x.float(), size, mode, antialias).clamp(0, 255).round() of uint8 tensors.
#pragma once
#include "base/tensor.hpp"
#include "shared/torch_resize_float_sum.hpp"
#include "torch/resize.hpp"

namespace stoker::torch_resize {

// Filter columns, then rows, with weights and sums in float32; bytes are rounded once, half to even. Linear or cubic.
// src and dst: [H,W,C] of U8, or both of F32; src with any strides, dst with contiguous channels. They must not
// overlap. Return false, with dst untouched, for other types or an image without pixels.
bool resize_in_floats(const View& src, Filter filter, Way way, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_resize
