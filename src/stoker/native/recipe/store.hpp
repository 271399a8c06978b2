// SPDX-License-Identifier: Apache-2.0
// Last step of a recipe: store pixels through a table into planes.
#pragma once
#include <cstdint>

#include "base/tensor.hpp"
#include "recipe/arrange.hpp"
#include "recipe/chain.hpp"

namespace stoker::recipe {

// Destination of an image: [C,H,W] of elements of `item` bytes, optionally mirrored. The table has 256 elements for
// each channel, or for all (`per_channel` 0); without a table the 8 bits are stored, and `item` is 1. `arrangement`
// gives another order, of floats.
struct Planes {
  uint8_t* to;
  int64_t height, width, channels;
  const uint8_t* table;
  int64_t item;
  bool per_channel, mirror_x, mirror_y;
  bool spread;  // rows have one channel, which is stored in all planes
  const Arrangement* arrangement = nullptr;
  const Chain* chains = nullptr;  // of the table, one per channel of the table
};

// Store rows [y0, y1) of the image before mirroring; pixels are contiguous, rows are `pitch` bytes apart.
void store_rows(const Planes& planes, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch);

// Store an image with any strides. Mirroring is expressed by the strides and not by `planes`.
void store_image(const Planes& planes, const View& image);

// Store an image of floats, [H,W,C] with any strides, as planes.
void store_floats(const View& image, float* to);

}  // namespace stoker::recipe
