// SPDX-License-Identifier: Apache-2.0
// Contrast-limited adaptive equalization, as OpenCV's CLAHE. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

#include "shared/xmath.hpp"

namespace stoker::clahe {

constexpr int kValues = 256;

// Division of an image into tiles of one size. If the extents are no multiples of the numbers of tiles, the image is
// extended by reflection at the right and at the bottom, along both axes.
struct Tiles {
  int64_t across, down;           // numbers of tiles
  int64_t width, height;          // of a tile
  int64_t all_width, all_height;  // of the extended image

  Tiles(int64_t image_height, int64_t image_width, int64_t tiles_across, int64_t tiles_down)
      : across(tiles_across), down(tiles_down) {
    const bool fits = image_width % across == 0 && image_height % down == 0;
    all_width = fits ? image_width : image_width + across - image_width % across;
    all_height = fits ? image_height : image_height + down - image_height % down;
    width = all_width / across;
    height = all_height / down;
  }
  int64_t count() const { return across * down; }
  int64_t pixels() const { return width * height; }
  float scale() const { return 255.0f / static_cast<float>(pixels()); }
};

// Largest count of a value; 0: no limit.
inline int64_t count_limit(double clip_limit, int64_t pixels) {
  if (!(clip_limit > 0)) return 0;
  const double limit = clip_limit * static_cast<double>(pixels) / kValues;
  if (limit >= static_cast<double>(pixels)) return pixels;
  return limit < 1 ? 1 : static_cast<int64_t>(limit);
}

// Count of a value after the counts beyond the limit, `excess` in all, were distributed.
inline int64_t distributed(int64_t count, int64_t limit, int64_t excess, int64_t value) {
  if (limit == 0) return count;
  const int64_t left = excess % kValues, kept = count < limit ? count : limit;
  if (left == 0) return kept + excess / kValues;
  const int64_t step = kValues / left > 1 ? kValues / left : 1;
  return kept + excess / kValues + (value % step == 0 && value / step < left ? 1 : 0);
}

inline uint8_t rounded(float x) {
  const auto whole = static_cast<int32_t>(xm::round_even(static_cast<double>(x)));
  return static_cast<uint8_t>(whole < 0 ? 0 : whole > 255 ? 255 : whole);
}

// Tiles between whose centres a position lies, and the share of the second one.
struct Between {
  int64_t first, second;
  float share, rest;
  Between(int64_t position, float inverse_size, int64_t tiles) {
    const float at = static_cast<float>(position) * inverse_size - 0.5f;
    // The position is at least -0.5, so that the truncation of at + 1 is a floor.
    const auto below = static_cast<int64_t>(at + 1.0f) - 1;
    int64_t low = below;
    if (static_cast<float>(low + 1) <= at) ++low;
    if (static_cast<float>(low) > at) --low;
    share = at - static_cast<float>(low);
    rest = 1.0f - share;
    first = low < 0 ? 0 : low;
    second = low + 1 < tiles ? low + 1 : tiles - 1;
    if (first >= tiles) first = tiles - 1;
  }
};

// Value between those of four tiles: above and below, left and right.
inline float blended(float above_left, float above_right, float below_left, float below_right, const Between& x,
                     const Between& y) {
  return (above_left * x.rest + above_right * x.share) * y.rest +
         (below_left * x.rest + below_right * x.share) * y.share;
}

}  // namespace stoker::clahe
