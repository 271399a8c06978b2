// SPDX-License-Identifier: Apache-2.0
// Planes of an image, and tiles of them. Contiguous channels form one plane, whose rows have pixels times channels
// values; other channels are a plane each.
#pragma once
#include "device/own.cuh"
#include "shared/border.hpp"

namespace stoker::own {

constexpr int32_t kTileWidth = 128;  // values of a tile's rows; also in ops/image/_tiles.py

// One plane: rows with `inner` values per pixel.
struct Plane {
  uint8_t* data;
  int64_t height, width, inner;
  int64_t row, column, channel;

  Plane() = default;
  Plane(const Image& image, int64_t number)
      : height(image.height),
        width(image.width),
        inner(image.inner ? image.channels : 1),
        row(image.row),
        column(image.column),
        channel(image.channel) {
    const int64_t frame = image.inner ? number : number / image.channels, c = image.inner ? 0 : number % image.channels;
    data = image.data + frame * image.frame + c * image.channel;
  }
  // Values of a row.
  int64_t values() const { return width * inner; }
  // Offset of a value from the start of its row.
  int64_t offset(int64_t value) const {
    const int64_t pixel = quotient(value, inner);
    return pixel * column + (value - pixel * inner) * channel;
  }
};

// The tile of a block: kTileWidth values of `rows` rows, from row `y` and value `v` of a plane on.
struct TileOfPlane {
  int64_t plane, y, v;

  TileOfPlane(const Image& image, uint32_t block, int64_t rows) {
    const int64_t values = image.width * (image.inner ? image.channels : 1);
    const int64_t across = (values + kTileWidth - 1) / kTileWidth, down = (image.height + rows - 1) / rows;
    plane = quotient(block, across * down);
    const int64_t tile = block - plane * across * down, line = quotient(tile, across);
    y = line * rows;
    v = (tile - line * across) * kTileWidth;
  }
};

// border_position, whose divisions only positions beyond the edges need.
STOKER_CALLED int64_t position_beyond(int64_t i, int64_t size, Border border) {
  return border_position(i, size, border);
}
inline int64_t position_at(int64_t i, int64_t size, Border border) {
  return static_cast<uint64_t>(i) < static_cast<uint64_t>(size) ? i : position_beyond(i, size, border);
}

// Part of a plane that a block reads: `high` rows of `wide` values, from row `y` on, and from the value on that lies
// `left` pixels before value `v`. It may lie beyond the edges.
struct Surroundings {
  int64_t y, v, left;
  int32_t high, wide;
  Border border;
};

// Read the surroundings of a tile by all threads of a block: load(address) gives a value, and put(i, value) takes the
// one of position i = y * wide + x. Positions beyond a constant border, and beyond the last one that is needed, have
// `fill`. Each thread reads several rows of one column at a time, so that addresses across are computed once.
template <class Value, class Load, class Put>
inline void read_surroundings(const Plane& from, const Surroundings& part, Value fill, Load&& load, Put&& put) {
  constexpr int kTogether = 4;
  constexpr auto kWarps = static_cast<int32_t>(kThreads / gpu::kWarp);
  const auto lane = static_cast<int32_t>(gpu::thread_index() % gpu::kWarp);
  const auto warp = static_cast<int32_t>(gpu::thread_index() / gpu::kWarp);
  for (int32_t x = lane; x < part.wide; x += static_cast<int32_t>(gpu::kWarp)) {
    const int64_t value = part.v + x, pixel = quotient(value, from.inner);
    const int64_t at = position_at(pixel - part.left, from.width, part.border);
    const uint8_t* const column = from.data + at * from.column + (value - pixel * from.inner) * from.channel;
    for (int32_t y0 = warp; y0 < part.high; y0 += kTogether * kWarps) {
      Value found[kTogether];
      STOKER_UNROLL for (int k = 0; k < kTogether; ++k) {
        found[k] = fill;
        if (y0 + k * kWarps >= part.high) break;
        const int64_t line = position_at(part.y + y0 + k * kWarps, from.height, part.border);
        if (at >= 0 && line >= 0) found[k] = load(column + line * from.row);
      }
      STOKER_UNROLL for (int k = 0; k < kTogether; ++k) {
        if (const int32_t y = y0 + k * kWarps; y < part.high) put(y * part.wide + x, found[k]);
      }
    }
  }
}

}  // namespace stoker::own
