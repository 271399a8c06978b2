// SPDX-License-Identifier: Apache-2.0
// Resizing of bytes as torch does it on CPUs, bit for bit: interpolate(size, mode, antialias) of uint8 tensors.
#pragma once
#include "tensor.hpp"

namespace stoker::torch_resize {

enum class Filter : int { Bilinear = 0, Bicubic, Lanczos };

// Columns, then rows, with weights of 16 bits whose precision follows from the largest one; both passes round to bytes.
// `smooth`: the filter covers what is made smaller; else (not for lanczos) it has its own size always.
// src and dst: [H,W,C] of U8; src with any strides, dst with channels side by side. They must not overlap.
// Returns false, with dst untouched, for other types or an image without pixels.
bool resize(const View& src, Filter filter, bool smooth, const View& dst, Scratch& scratch);

// The modes "nearest" and "nearest-exact". Pixels of any size.
bool pick(const View& src, bool exact, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_resize
