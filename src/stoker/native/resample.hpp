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

#include "resample_taps.hpp"
#include "tensor.hpp"

namespace stoker::resample {

struct Axis {
  int64_t in_size, out_size;
  double lo, hi;  // region in input coordinates, as Pillow's box; lo > hi mirrors the output
  Filter filter;
  bool antialias;  // false: the support is that of scale 1 even when shrinking
};

// The rounding between the passes makes their order visible in the last bit.
enum class Order : uint8_t {
  Pillow,           // Pillow 13: vertical first when H shrinks by more pixels than twice those that W loses
  HorizontalFirst,  // Pillow 12 and before: always horizontal first
};

// Receives rows [y0, y1) of out_w * C contiguous elements each, `pitch` bytes apart (which may be negative), in
// ascending order. The pixels are valid only during the call.
struct Sink {
  void (*rows)(void* ctx, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch);
  void* ctx;
};

// What resample() does, without doing it.
struct Passes {
  Window vertical, horizontal;  // a pass that only picks pixels has the filter Nearest
  bool vertical_first = false;  // matters only where neither picks
  bool empty = false;           // nothing is sent
};

// False where resample() returns false.
bool make_passes(const View& src, const Axis& vertical, const Axis& horizontal, Order order, Passes& passes);

// src: [H,W,C] of U8, U16, I16, I32 or F32 with any strides; fast when a pixel row is contiguous. Returns false, with
// nothing sent, for another rank or type, for a region that is not finite, or for sizes that cannot be addressed.
// The region is clamped to the image; the filter itself may read the image around it. An empty input or output
// sends no rows.
bool resample(const View& src, const Axis& vertical, const Axis& horizontal, const Sink& sink, Scratch& scratch,
              Order order = Order::Pillow);

// The same into dst, [out_h, out_w, C] of src's type with any strides. dst must not overlap src.
bool resample_into(const View& src, const Axis& vertical, const Axis& horizontal, const View& dst, Scratch& scratch,
                   Order order = Order::Pillow);

}  // namespace stoker::resample
