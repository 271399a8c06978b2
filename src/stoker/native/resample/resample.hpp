// SPDX-License-Identifier: Apache-2.0
// Separable resampling, bit for bit equal to Pillow's Image.resize(size, filter, box).
//
// Two passes with the result of the first rounded to the element type, in Pillow's order. Unlike Pillow it streams:
// only the horizontally resampled rows that the vertical filter still needs are kept, so that they stay in the first
// or second level cache.
//
// Arithmetic by element type:
//   U8        32-bit fixed point with 22 fraction bits (Pillow modes L and RGB)
//   F32       double sums stored as float (Pillow mode F)
//   I32       double sums, halves rounded away from zero, saturated (Pillow mode I, where Pillow is defined)
//   U16, I16  double sums, halves rounded to even, saturated (Pillow's I;16 is not followed: it wraps around)
#pragma once
#include <cstdint>

#include "base/tensor.hpp"
#include "shared/resample_taps.hpp"

namespace stoker::resample {

struct Axis {
  int64_t in_size, out_size;
  double lo, hi;  // region in input coordinates, like Pillow's box; lo > hi mirrors the output
  Filter filter;
  bool antialias;  // false: the support is that of scale 1, also when shrinking
};

// Order of the passes. The rounding between the passes makes the order visible in the last bit.
enum class Order : uint8_t {
  Pillow,           // Pillow 13: vertical first when H shrinks by more pixels than twice those that W loses
  HorizontalFirst,  // Pillow 12 and before: always horizontal first
};

// Receiver of rows [y0, y1) of out_w * C contiguous elements each, `pitch` bytes apart (which may be negative), in
// ascending order. The pixels are valid only during the call.
//
// If `into` is set, row y is written to into + y * into_pitch instead, and `rows` is not called.
struct Sink {
  void (*rows)(void* ctx, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch);
  void* ctx;
  uint8_t* into = nullptr;
  int64_t into_pitch = 0;
};

// Maker of the rows of an image of packed pixels of type U8, [H,W,C], which is nowhere in memory: it writes row `y` to `to`.
// Each row is asked for once, in ascending order if the vertical axis is not mirrored.
struct RowMaker {
  void (*row)(void* ctx, int64_t y, uint8_t* to);
  void* ctx;
};

// Plan of a resampling.
struct Passes {
  Window vertical, horizontal;  // a pass that only copies pixels has the filter Nearest
  bool vertical_first = false;  // only matters if neither pass only copies pixels
  bool empty = false;           // the sink receives nothing
};

// Plan a resampling without running it. Return false where resample() returns false.
bool make_passes(const View& src, const Axis& vertical, const Axis& horizontal, Order order, Passes& passes);

// Resample `src`, [H,W,C] of U8, U16, I16, I32 or F32 with any strides; rows with contiguous pixels are fastest. Return
// false without calling the sink for other ranks or types, for a region that is not finite, or for sizes that cannot be
// addressed. A region that exceeds the image is clamped, unless the centres of all outputs lie inside; the filter itself
// may read pixels around the region. For an empty input or output the sink receives no rows.
bool resample(const View& src, const Axis& vertical, const Axis& horizontal, const Sink& sink, Scratch& scratch,
              Order order = Order::Pillow);

// Resample an image of U8 whose rows are made when they are needed, with the result of `resample` on the whole image.
// `src`: its extents; it has no data. Return false as `resample` does, and for resamplings whose first pass is not a
// filter along the rows.
bool resample_made(const RowMaker& maker, const View& src, const Axis& vertical, const Axis& horizontal,
                   const Sink& sink, Scratch& scratch, Order order = Order::Pillow);

// Return whether the pixels of each row of an image [H,W,C] are contiguous and its elements are aligned, so that a sink can
// have rows written there.
bool has_packed_rows(const View& image);

// Resample into dst, [out_h, out_w, C] of src's type with any strides. dst must not overlap src.
bool resample_into(const View& src, const Axis& vertical, const Axis& horizontal, const View& dst, Scratch& scratch,
                   Order order = Order::Pillow);

}  // namespace stoker::resample
