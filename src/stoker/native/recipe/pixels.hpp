// SPDX-License-Identifier: Apache-2.0
// Recipe steps that move or blend pixels, by whole rows for any strides.
//
// All images are [H,W,C] of U8 with one or three channels. Outputs have contiguous pixels and do not overlap the input.
#pragma once
#include <cstdint>

#include "base/tensor.hpp"
#include "shared/border.hpp"

namespace stoker::recipe {

void copy(const View& from, const View& to);

// Place the image in a larger frame of one colour, given as a byte per channel.
void pad(const View& from, int64_t left, int64_t top, const uint8_t* color, const View& to);

// Extend the image by the border mode (not Constant); `left` and `top` may be negative.
void pad_edges(const View& from, int64_t left, int64_t top, Border border, const View& to);

// Pillow's ImageEnhance.Color: blend three channels with their luma.
void saturate(const View& from, float factor, const View& to);

}  // namespace stoker::recipe
