// SPDX-License-Identifier: Apache-2.0
// Correlation of an image with a window of weights, summed in float32 in the order of the weights, as in
// filter/correlate.cpp.
#pragma once
#include "device/own_plane.cuh"

namespace stoker::own {

// A block computes a tile of one plane: kTileWidth values by kTileRows rows, of which a thread computes kThreadRows in
// a column.
constexpr int kThreadRows = 8;
constexpr int32_t kTileRows = kThreads / kTileWidth * kThreadRows;  // also in ops/image/_correlation.py
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

// Image whose values are loaded where the window reads them.
template <class E>
struct WindowView {
  const Plane& from;
  const Window& window;

  // Return the sum for a value in row `y`.
  float sum(int64_t y, int64_t value) const {
    const int64_t pixel = quotient(value, from.inner), c = value - pixel * from.inner;
    float total = 0;
    for (int64_t i = 0; i < window.height; ++i) {
      const int64_t line = position_at(y - window.top + i, from.height, window.border);
      for (int64_t j = 0; j < window.width; ++j) total += at(line, pixel - window.left + j, c) * window.weight(i, j);
    }
    return total;
  }

 private:
  float at(int64_t line, int64_t pixel, int64_t c) const {
    const int64_t x = position_at(pixel, from.width, window.border);
    if (line < 0 || x < 0) return window.fill;
    return static_cast<float>(load<E>(from.data + line * from.row + x * from.column + c * from.channel));
  }
};

// Add the products of a weight with kCount values of element type E, `apart` values from each other.
template <class E, int kCount>
inline void add_products(const typename E::Memory* values, int32_t apart, float weight, float (&sums)[kCount]) {
  STOKER_UNROLL for (int k = 0; k < kCount; ++k) sums[k] +=
      static_cast<float>(load<E>(reinterpret_cast<const uint8_t*>(values + k * apart))) * weight;
}

// Compute one tile; `block` counts the tiles of an image.
template <class In, class Out>
inline void correlate_block(const Image& image, const Window& window, const Image& target, uint32_t block, Tile& tile) {
  const TileOfPlane place(target, block, kTileRows);
  const Plane from(image, place.plane), to(target, place.plane);
  const auto v = static_cast<int32_t>(gpu::thread_index() % kTileWidth);
  const auto first = static_cast<int32_t>(gpu::thread_index() / kTileWidth * kThreadRows);
  const int64_t wide = kTileWidth + (window.width - 1) * from.inner, high = kTileRows + window.height - 1;
  const bool fits = wide * high <= kTileRoom;  // otherwise every value is loaded where it is used
  if (fits) {
    const Surroundings part{place.y - window.top,       place.v,      window.left, static_cast<int32_t>(high),
                            static_cast<int32_t>(wide), window.border};
    read_surroundings<float>(
        from, part, window.fill, [](const uint8_t* p) { return static_cast<float>(load<In>(p)); },
        [&](int32_t i, float x) { tile[i] = x; });
  }
  gpu::block_barrier();
  if (place.v + v >= to.values()) return;
  uint8_t* const column = to.data + to.offset(place.v + v);
  if (!fits) {
    const WindowView<In> seen{from, window};
    for (int64_t y = place.y + first; y < place.y + first + kThreadRows && y < to.height; ++y)
      store<Out>(column + y * to.row, op::cast<Out>(seen.sum(y, place.v + v)));
    return;
  }
  float sums[kThreadRows] = {};
  const auto height = static_cast<int32_t>(window.height), width = static_cast<int32_t>(window.width);
  const auto pitch = static_cast<int32_t>(wide), step = static_cast<int32_t>(from.inner);
  for (int32_t i = 0; i < height; ++i) {
    const float* values = tile.values + (first + i) * pitch + v;
    for (int32_t j = 0; j < width; ++j, values += step) add_products<F32>(values, pitch, window.weight(i, j), sums);
  }
  STOKER_UNROLL for (int k = 0; k < kThreadRows; ++k) {
    if (const int64_t y = place.y + first + k; y < to.height) store<Out>(column + y * to.row, op::cast<Out>(sums[k]));
  }
}

}  // namespace stoker::own
