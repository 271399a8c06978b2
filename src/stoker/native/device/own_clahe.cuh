// SPDX-License-Identifier: Apache-2.0
// `clahe`: convert to L*a*b*, compute a table for every tile, and map the pixels.
#pragma once
#include "device/own_order.cuh"
#include "shared/border.hpp"
#include "shared/clahe.hpp"
#include "shared/lab.hpp"

namespace stoker::own {

// Numbers: tiles across, tiles down, limit, the image's axes, whether the lightness of RGB is equalized. A row's scratch
// memory: a table for each tile of each plane, then with L*a*b* three bytes for each pixel.
template <class Ports>
struct Clahe {
  static constexpr int kAxes = 3;
  using Counts = Array<uint32_t, clahe::kValues>;
  using Sums = Array<int64_t, 2 * clahe::kValues>;

  struct Share {
    Image image;
    const uint16_t* lab;
    bool lightness;
    int64_t planes;  // to equalize, of all frames
    clahe::Tiles tiles;
    uint8_t* tables;
    uint8_t* colors;

    Share(const Row& row, int port)
        : image(row, port, kAxes),
          lab(reinterpret_cast<const uint16_t*>(row.port(1).data)),
          lightness(row.number(kAxes + 4) != 0 && image.channels == 3),
          planes(image.frames * (lightness ? 1 : image.channels)),
          tiles(image.height, image.width, static_cast<int64_t>(row.number(0)), static_cast<int64_t>(row.number(1))) {
      tables = row.scratch<uint8_t>();
      colors = tables + planes * tiles.count() * clahe::kValues;
    }
    int64_t pixels() const { return image.height * image.width; }
    // The value to equalize of a plane's pixel.
    uint8_t value(int64_t plane, int64_t y, int64_t x) const {
      if (lightness) return colors[3 * (plane * pixels() + y * image.width + x)];
      const int64_t f = plane / image.channels, c = plane - f * image.channels;
      return *order::address(image, {f, y, x, c});
    }
    uint8_t* table(int64_t plane, int64_t j, int64_t i) const {
      return tables + ((plane * tiles.down + j) * tiles.across + i) * clahe::kValues;
    }
    // Call visit(plane, y, x) for the pixels of a block.
    template <class Visit>
    void each(uint32_t block, Visit&& visit) const {
      const int64_t count = planes * pixels(), begin = block * order::kBlock;
      const int64_t end = begin + order::kBlock < count ? begin + order::kBlock : count;
      for (int64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
        const int64_t plane = i / pixels(), rest = i - plane * pixels(), y = rest / image.width;
        visit(plane, y, rest - y * image.width);
      }
    }
  };

  static void convert(const Row& row, uint32_t block) {
    const Share share(row, 0);
    if (!share.lightness) return;
    share.each(block, [&](int64_t frame, int64_t y, int64_t x) {
      uint8_t rgb[3];
      for (int c = 0; c < 3; ++c) rgb[c] = *order::address(share.image, {frame, y, x, c});
      const lab::Color color = lab::from_rgb(share.lab, rgb[0], rgb[1], rgb[2]);
      uint8_t* const to = share.colors + 3 * (frame * share.pixels() + y * share.image.width + x);
      for (int c = 0; c < 3; ++c) to[c] = color.v[c];
    });
  }

  // One block per tile of a plane.
  static void tabulate(const Row& row, uint32_t block) {
    STOKER_SHARED(Counts, counts);
    STOKER_SHARED(Sums, sums);  // double buffer
    const Share share(row, 0);
    const clahe::Tiles& tiles = share.tiles;
    const uint32_t v = gpu::thread_index();
    const int64_t plane = block / tiles.count(), tile = block - plane * tiles.count();
    if (plane >= share.planes) return;
    const int64_t j = tile / tiles.across, i = tile - j * tiles.across;
    counts[v] = 0;
    gpu::block_barrier();
    for (int64_t k = v; k < tiles.pixels(); k += kThreads) {
      const int64_t line = k / tiles.width;
      const int64_t y = border_position(j * tiles.height + line, share.image.height, Border::Reflect101);
      const int64_t x =
          border_position(i * tiles.width + k - line * tiles.width, share.image.width, Border::Reflect101);
      gpu::atomic_add(&counts[share.value(plane, y, x)], 1);
    }
    gpu::block_barrier();
    const int64_t limit = clahe::count_limit(row.number(2), tiles.pixels()), own = counts[v];
    sums[v] = limit && own > limit ? own - limit : 0;
    gpu::block_barrier();
    const int64_t excess = total_of(sums, v);
    gpu::block_barrier();
    sums[v] = clahe::distributed(own, limit, excess, v);
    gpu::block_barrier();
    const int64_t sum = prefix_of(sums, v);
    share.table(plane, j, i)[v] = clahe::rounded(static_cast<float>(sum) * tiles.scale());
  }

  static void apply(const Row& row, uint32_t block) {
    const Share from(row, 0), to(row, 2);
    const float inverse_width = 1.0f / static_cast<float>(from.tiles.width);
    const float inverse_height = 1.0f / static_cast<float>(from.tiles.height);
    from.each(block, [&](int64_t plane, int64_t y, int64_t x) {
      const clahe::Between across(x, inverse_width, from.tiles.across), down(y, inverse_height, from.tiles.down);
      const uint8_t value = from.value(plane, y, x);
      const auto at = [&](int64_t j, int64_t i) { return static_cast<float>(from.table(plane, j, i)[value]); };
      const uint8_t found =
          clahe::rounded(clahe::blended(at(down.first, across.first), at(down.first, across.second),
                                        at(down.second, across.first), at(down.second, across.second), across, down));
      if (!from.lightness) {
        const int64_t f = plane / to.image.channels, c = plane - f * to.image.channels;
        *order::address(to.image, {f, y, x, c}) = found;
        return;
      }
      const uint8_t* const color = from.colors + 3 * (plane * from.pixels() + y * from.image.width + x);
      const lab::Color rgb = lab::to_rgb(from.lab, {{found, color[1], color[2]}});
      for (int c = 0; c < 3; ++c) *order::address(to.image, {plane, y, x, c}) = rgb.v[c];
    });
  }

 private:
  // Inclusive prefix sum of the first half by doubling; the buffer is free after the next barrier.
  static int64_t prefix_of(Sums& sums, uint32_t v) {
    uint32_t from = 0;
    for (uint32_t step = 1; step < clahe::kValues; step *= 2, from = clahe::kValues - from) {
      sums[clahe::kValues - from + v] = sums[from + v] + (v >= step ? sums[from + v - step] : 0);
      gpu::block_barrier();
    }
    return sums[from + v];
  }
  static int64_t total_of(Sums& sums, uint32_t v) {
    prefix_of(sums, v);
    return sums[clahe::kValues - 1];  // eight steps end in the first half
  }
};

}  // namespace stoker::own
