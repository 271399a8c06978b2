// SPDX-License-Identifier: Apache-2.0
// Steps of recipes that take several images of one size: a row at a time, out of the cache.
//
// All images are [H,W,C] of U8 with any strides; outputs have their pixels side by side.
#pragma once
#include <cstdint>
#include <vector>

#include "tensor.hpp"

namespace stoker::recipe {

// An image, and what its values become: 256 floats for all channels, or for each if `per_channel` is 256.
struct Part {
  View image;
  const float* values;
  int64_t per_channel;
};

// The sum of all parts in their order, truncated to bytes.
void mix(const std::vector<Part>& parts, const View& to);

// Pillow's Image.blend of two images.
void blend(const View& from, const View& other, float factor, const View& to);

}  // namespace stoker::recipe
