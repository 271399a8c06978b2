// SPDX-License-Identifier: Apache-2.0
// The last step of a recipe: pixels through a table into planes.
#pragma once
#include <cstdint>

#include "tensor.hpp"

namespace stoker::recipe {

// Where an image goes: [C,H,W] of elements of `item` bytes, mirrored if asked for. The table has 256 of them for each
// channel, or for all (`per_channel` 0); without one the 8 bits are stored, `item` 1.
struct Planes {
  uint8_t* to;
  int64_t height, width, channels;
  const uint8_t* table;
  int64_t item;
  bool per_channel, mirror_x, mirror_y;
  bool spread;  // rows come with one channel, which is stored in all planes
};

// Rows [y0, y1) of the image before it is mirrored, its pixels one after the other, `pitch` bytes from row to row.
void store_rows(const Planes& planes, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch);

// An image with any strides; what its strides mirror is mirrored, `planes` says no more of it.
void store_image(const Planes& planes, const View& image);

// An image of floats, [H,W,C] with any strides, as planes.
void store_floats(const View& image, float* to);

// Makes what this thread has stored visible to who learns from it that it is done.
void fence();

}  // namespace stoker::recipe
