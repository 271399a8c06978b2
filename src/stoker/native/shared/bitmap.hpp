// SPDX-License-Identifier: Apache-2.0
// Memory layout of an image of bytes. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

namespace stoker {

// 8-bit image [H,W,C] with arbitrary strides in bytes.
struct Bitmap {
  uint8_t* data;
  int64_t height, width, channels;
  int64_t row, pixel, channel;  // strides

  uint8_t* at(int64_t y, int64_t x) const { return data + y * row + x * pixel; }
};

}  // namespace stoker
