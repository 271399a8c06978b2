// SPDX-License-Identifier: Apache-2.0
// Resizing of bytes as in torch on CPUs, bit for bit: interpolate(size, mode, antialias) of uint8 tensors.
#pragma once
#include "base/tensor.hpp"

namespace stoker::torch_resize {

enum class Filter : int { Bilinear = 0, Bicubic, Lanczos };

// Filter columns, then rows, with 16-bit weights whose precision follows from the largest weight; both passes round to
// bytes. `smooth` widens the filter when the image shrinks; otherwise (not for lanczos) it keeps its own size. src and
// dst: [H,W,C] of U8; src with any strides, dst with contiguous channels. They must not overlap. Return false, with dst
// untouched, for other types or an image without pixels.
bool resize(const View& src, Filter filter, bool smooth, const View& dst, Scratch& scratch);

// Resize with mode "nearest" or "nearest-exact". Pixels may have any size.
bool pick(const View& src, bool exact, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_resize
