// SPDX-License-Identifier: Apache-2.0
// Recipe steps that take several images of one size, computed row by row so that the rows stay in the cache.
//
// All images are [H,W,C] of U8 with any strides; outputs have contiguous pixels.
#pragma once
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"

namespace stoker::recipe {

// An image, and the table of its values' contributions: 256 floats for all channels, or for each channel if
// `per_channel` is 256.
struct Part {
  View image;
  const float* values;
  int64_t per_channel;
};

// Sum all parts in order and truncate to bytes.
void mix(const std::vector<Part>& parts, const View& to);

// Pillow's Image.blend of two images.
void blend(const View& from, const View& other, float factor, const View& to);

}  // namespace stoker::recipe
