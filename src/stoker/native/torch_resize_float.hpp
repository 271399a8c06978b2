// SPDX-License-Identifier: Apache-2.0
// Resizing of floats as torch does it, bit for bit, and of bytes by way of floats, as torchvision's first generation does:
// interpolate(x.float(), size, mode, antialias).clamp(0, 255).round() of uint8 tensors.
#pragma once
#include "tensor.hpp"
#include "torch_resize.hpp"
#include "torch_resize_float_sum.hpp"

namespace stoker::torch_resize {

// Columns, then rows, with weights and sums of float32; bytes are rounded once, half to even. Linear or cubic.
// src and dst: [H,W,C] of U8, or both of F32; src with any strides, dst with channels side by side. They must not overlap.
// Returns false, with dst untouched, for other types or an image without pixels.
bool resize_in_floats(const View& src, Filter filter, Way way, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_resize
