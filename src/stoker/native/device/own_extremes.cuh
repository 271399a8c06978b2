// SPDX-License-Identifier: Apache-2.0
// Minima or maxima of windows, along the rows and then down the columns: of a tile in shared memory, or, where a tile
// with its surroundings is too large, of the whole image in two passes.
#pragma once
#include "device/own_order.cuh"
#include "device/own_plane.cuh"

namespace stoker::own {

// Numbers: height and width of the window, its rows above and pixels before the position, the image's axes, the border
// mode, whether maxima are wanted. A row's scratch memory, if it has no tiles: the extremes of the rows' windows, as
// keys, in the order of the elements' numbers.
template <class Ports>
struct Extremes {
  using Keys = order::KeysOf<typename Ports::template At<0>>;
  using Key = typename Keys::Key;
  static constexpr int32_t kTileRows = 32;  // also in ops/image/_windows.py
  static constexpr int32_t kTogether = 4;   // rows that a thread computes at a time
  static_assert(kThreads % kTileWidth == 0);

  struct Window {
    int64_t height, width, top, left;
    Border border;
    Key flip;  // minima are maxima of inverted keys
    explicit Window(const Row& row) {
      height = static_cast<int64_t>(row.number(0));
      width = static_cast<int64_t>(row.number(1));
      top = static_cast<int64_t>(row.number(2));
      left = static_cast<int64_t>(row.number(3));
      border = static_cast<Border>(static_cast<int>(row.number(8)));
      flip = row.number(9) != 0 ? Key{0} : Keys::kAll;
    }
    Key load(const uint8_t* p) const { return static_cast<Key>(Keys::load(p) ^ flip); }
    void store(uint8_t* p, Key key) const { Keys::store(p, static_cast<Key>(key ^ flip)); }
  };

  // Rows y, y + step, ... of `count` windows of keys, `stride` keys apart, from `keys` on.
  template <int kCount>
  static void best(const Key* keys, int32_t rows_apart, int32_t count, int32_t stride, Key (&found)[kCount]) {
    STOKER_UNROLL for (int k = 0; k < kCount; ++k) found[k] = 0;
    for (int32_t j = 0; j < count; ++j, keys += stride) STOKER_UNROLL for (int k = 0; k < kCount; ++k) {
        const Key key = keys[k * rows_apart];
        found[k] = found[k] < key ? key : found[k];
      }
  }

  static void tile(const Row& row, uint32_t block) {
    const Window window(row);
    const Image image(row, 0, 4), target(row, 1, 4);
    const TileOfPlane place(image, block, kTileRows);
    const Plane from(image, place.plane), to(target, place.plane);
    const auto step = static_cast<int32_t>(from.inner);
    const Surroundings part{place.y - window.top,
                            place.v,
                            window.left,
                            kTileRows - 1 + static_cast<int32_t>(window.height),
                            kTileWidth + (static_cast<int32_t>(window.width) - 1) * step,
                            window.border};
    Key* const seen = gpu::dynamic_shared<Key>();
    Key* const between = seen + part.high * part.wide;  // kTileWidth keys per row
    read_surroundings<Key>(
        from, part, Key{0}, [&](const uint8_t* p) { return window.load(p); },
        [&](int32_t i, Key key) { seen[i] = key; });
    gpu::block_barrier();
    constexpr auto kGroups = static_cast<int32_t>(kThreads / kTileWidth);
    const auto v = static_cast<int32_t>(gpu::thread_index() % kTileWidth);
    const auto group = static_cast<int32_t>(gpu::thread_index() / kTileWidth);
    for (int32_t y = group * kTogether; y < part.high; y += kGroups * kTogether) {
      const int32_t first = y + kTogether <= part.high ? y : part.high - kTogether;  // kTileRows >= kTogether
      Key found[kTogether];
      best(seen + first * part.wide + v, part.wide, static_cast<int32_t>(window.width), step, found);
      STOKER_UNROLL for (int k = 0; k < kTogether; ++k) between[(first + k) * kTileWidth + v] = found[k];
    }
    gpu::block_barrier();
    if (place.v + v >= to.values()) return;
    uint8_t* const column = to.data + to.offset(place.v + v);
    for (int32_t y = group * kTogether; y < kTileRows && place.y + y < to.height; y += kGroups * kTogether) {
      Key found[kTogether];
      best(between + y * kTileWidth + v, kTileWidth, static_cast<int32_t>(window.height), kTileWidth, found);
      STOKER_UNROLL for (int k = 0; k < kTogether; ++k) {
        if (place.y + y + k < to.height) window.store(column + (place.y + y + k) * to.row, found[k]);
      }
    }
  }

  static void across(const Row& row, uint32_t block) {
    const Window window(row);
    const Image from(row, 0, 4);
    Key* const between = row.scratch<Key>();
    order::each_element(from, block, [&](int64_t number, const order::Place& at) {
      Key found = 0;
      order::Place seen = at;
      for (int64_t j = 0; j < window.width; ++j) {
        seen.x = border_position(at.x - window.left + j, from.width, window.border);
        if (seen.x < 0) continue;
        const Key key = window.load(order::address(from, seen));
        found = found < key ? key : found;
      }
      between[number] = found;
    });
  }

  static void down(const Row& row, uint32_t block) {
    const Window window(row);
    const Image to(row, 1, 4);
    const Key* const between = row.scratch<Key>();
    const int64_t line = to.width * (to.inner ? to.channels : 1);  // elements from a row to the next one
    order::each_element(to, block, [&](int64_t number, const order::Place& at) {
      Key found = 0;
      for (int64_t i = 0; i < window.height; ++i) {
        const int64_t y = border_position(at.y - window.top + i, to.height, window.border);
        if (y < 0) continue;
        const Key key = between[number + (y - at.y) * line];
        found = found < key ? key : found;
      }
      window.store(order::address(to, at), found);
    });
  }
};

}  // namespace stoker::own
