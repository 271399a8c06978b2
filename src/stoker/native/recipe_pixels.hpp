// SPDX-License-Identifier: Apache-2.0
// Steps of recipes that move pixels or look each value up: whole rows at a time, whatever the strides.
//
// All images are [H,W,C] of U8 with one or three channels. Outputs have their pixels side by side, and do not overlap
// the input.
#pragma once
#include <cstdint>

#include "border.hpp"
#include "tensor.hpp"

namespace stoker::recipe {

void copy(const View& from, const View& to);

// In a larger frame of one colour, a byte for each channel.
void pad(const View& from, int64_t left, int64_t top, const uint8_t* color, const View& to);

// With what `border` shows around it (not Constant); `left` and `top` may be negative.
void pad_edges(const View& from, int64_t left, int64_t top, Border border, const View& to);

// Each value through a table of 256; those of other channels are `per_channel` bytes further on.
void map(const View& from, const uint8_t* values, int64_t per_channel, const View& to);

// How often the values of each channel occur: 256 counts of each, added to.
void count_values(const View& from, int64_t* counts);

// Pillow's ImageEnhance.Color: three channels, blended with their luma.
void saturate(const View& from, float factor, const View& to);

}  // namespace stoker::recipe
