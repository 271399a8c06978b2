// SPDX-License-Identifier: Apache-2.0
// Correlation of an image with a window of weights, summed in float32 in the order of the weights, as in
// filter/correlate.cpp.
#pragma once
#include "device/own.cuh"
#include "shared/border.hpp"

namespace stoker::own {

// A block computes a tile of one plane: kTileWidth values by kTileRows rows, of which a thread computes kThreadRows in
// a column. Contiguous channels form one plane, whose rows have pixels times channels values; other channels are a
// plane each.
constexpr int64_t kTileWidth = 128;  // also in ops/image/_correlation.py
constexpr int kThreadRows = 8;
constexpr int64_t kTileRows = kThreads / kTileWidth * kThreadRows;
constexpr int64_t kTileRoom = 10240;  // maximum number of values of a tile with its border in shared memory

using Tile = Array<float, kTileRoom>;

struct Window {
  const uint8_t* weights;
  int64_t height, width;
  int64_t row, column;  // strides of the weights
  int64_t top, left;
  Border border;
  float fill;
  float weight(int64_t i, int64_t j) const { return *reinterpret_cast<const float*>(weights + i * row + j * column); }
};

// One plane: rows with `inner` values per pixel.
struct Plane {
  uint8_t* data;
  int64_t height, width, inner;
  int64_t row, column, channel;
};

inline Plane plane_of(const Image& image, int64_t number) {
  if (image.inner) {
    return {image.data + number * image.frame,
            image.height,
            image.width,
            image.channels,
            image.row,
            image.column,
            image.channel};
  }
  const int64_t frame = number / image.channels, c = number - frame * image.channels;
  return {image.data + frame * image.frame + c * image.channel,
          image.height,
          image.width,
          1,
          image.row,
          image.column,
          image.channel};
}

// Value that the window reads in row `y` at position `value`, for a row that begins `window.left` pixels before the
// image.
template <class E>
struct WindowView {
  const Plane& from;
  const Window& window;

  float at(int64_t y, int64_t value) const {
    const int64_t line = border_position(y, from.height, window.border);
    const int64_t pixel = quotient(value, from.inner), c = value - pixel * from.inner;
    const int64_t x = border_position(pixel - window.left, from.width, window.border);
    if (line < 0 || x < 0) return window.fill;
    return static_cast<float>(load<E>(from.data + line * from.row + x * from.column + c * from.channel));
  }
};

// Compute one tile; `block` counts the tiles of a plane.
template <class In, class Out>
inline void correlate_tile(const Plane& from, const Window& window, const Plane& to, int64_t block, Tile& tile) {
  const int64_t values = to.width * to.inner, across = (values + kTileWidth - 1) / kTileWidth;
  const int64_t y0 = block / across * kTileRows, v0 = block % across * kTileWidth;
  const auto v = static_cast<int32_t>(gpu::thread_index() % kTileWidth);
  const auto first = static_cast<int32_t>(gpu::thread_index() / kTileWidth * kThreadRows);
  const int64_t wide = kTileWidth + (window.width - 1) * from.inner, high = kTileRows + window.height - 1;
  const bool fits = wide * high <= kTileRoom;  // otherwise every value is loaded where it is used
  const WindowView<In> seen{from, window};
  if (fits) {
    const int64_t end = values + (window.width - 1) * from.inner;
    const auto all = static_cast<uint32_t>(wide * high), across_tile = static_cast<uint32_t>(wide);
    for (uint32_t i = gpu::thread_index(); i < all; i += kThreads) {
      const uint32_t y = i / across_tile, x = i - y * across_tile;
      tile[i] = v0 + x < end ? seen.at(y0 + y - window.top, v0 + x) : 0.0f;
    }
  }
  gpu::block_barrier();
  if (v0 + v >= values) return;
  float sums[kThreadRows] = {};
  const auto height = static_cast<int32_t>(window.height), width = static_cast<int32_t>(window.width);
  const auto pitch = static_cast<int32_t>(wide), step = static_cast<int32_t>(from.inner);
  for (int32_t i = 0; i < height; ++i)
    for (int32_t j = 0; j < width; ++j) {
      const float w = window.weight(i, j);
      const int32_t y = first + i, x = v + j * step;
      STOKER_UNROLL for (int k = 0; k < kThreadRows; ++k) sums[k] +=
          (fits ? tile[(y + k) * pitch + x] : seen.at(y0 + y + k - window.top, v0 + x)) * w;
    }
  const int64_t pixel = quotient(v0 + v, to.inner), c = v0 + v - pixel * to.inner;
  STOKER_UNROLL for (int k = 0; k < kThreadRows; ++k) {
    const int64_t y = y0 + first + k;
    if (y < to.height) store<Out>(to.data + y * to.row + pixel * to.column + c * to.channel, op::cast<Out>(sums[k]));
  }
}

// The same, with `block` counting the tiles of a whole image.
template <class In, class Out>
inline void correlate_block(const Image& from, const Window& window, const Image& to, uint32_t block, Tile& tile) {
  const int64_t values = to.width * (to.inner ? to.channels : 1);
  const int64_t tiles = (values + kTileWidth - 1) / kTileWidth * ((to.height + kTileRows - 1) / kTileRows);
  const int64_t plane = block / tiles;
  correlate_tile<In, Out>(plane_of(from, plane), window, plane_of(to, plane), block - plane * tiles, tile);
}

}  // namespace stoker::own
