// SPDX-License-Identifier: Apache-2.0
// How a recipe describes itself to the GPU: written by recipe_gpu.cpp, read by recipe.cuh. A row's slot names its steps,
// which lie in memory that is sent along; all sizes, strides and memory have been worked out.
#pragma once
#include <cstdint>

#include "../bitmap.hpp"
#include "../recipe_ops.hpp"
#include "../resample_taps.hpp"
#include "../torch_resize_float_sum.hpp"

namespace stoker::recipe::gpu {

constexpr int kThreads = 512;  // of a row's block
constexpr int kRooms = 5;
constexpr int kNumbers = 12;

struct Row {
  uint64_t steps;  // of Step
  int64_t count;   // 0: nothing is to be done
  int64_t work;    // roughly, to sort rows by
  int64_t unused;
};

// Numbers that are not said here are those of the step's recipe, in its order, without the output's size.
struct Step {
  Op op;
  int32_t kind;          // generation, border, sampling, walk, filter; Store, Patch: bytes of a value
  Bitmap in, out;        // Store, Patch: `out` has only memory
  double number[kNumbers];
  uint64_t extra;        // tables, weights, points, or one of the structures below
  uint64_t room[kRooms];  // memory to work in
};

// How Affine finds its pixels; see warp.hpp. A scale is walked in steps.
enum class Walk : int32_t { Linear, Fixed, Steps };

// extra of Resize. Rooms: taps down, taps across, weights down, weights across, the image between the passes.
struct Axes {
  resample::Window vertical, horizontal;
  int64_t vertical_first;
};

// extra of TorchResize. Room 0: the image between the passes. An axis without pairs stays as it is.
struct PairAxis {
  uint64_t start, pairs;  // int32: per output; `most` per output
  int64_t most, precision;
};
struct PairAxes {
  PairAxis horizontal, vertical;
};

// extra of TorchResizeFloats (torch_resize_float_taps.hpp). Room 0, if smooth: the image between the passes, of floats.
struct FloatAxis {
  uint64_t index, count, weights;  // int32, int32, float
  int64_t room;
};
struct FloatAxes {
  FloatAxis horizontal, vertical;
  torch_resize::Way way;
};

// extra of Mix: number[0] of these. Tables of floats, 256 per channel if per_channel.
struct Term {
  Bitmap image;
  uint64_t table;
  int64_t per_channel;
};

// extra of Blend: the Bitmap of the other image.

// extra of Blur. Rooms 0 and 1: images between the passes.
struct Boxes {
  int64_t passes;
  int64_t radius[2];     // across, down; -1: none
  uint32_t whole[2], part[2];
};

}  // namespace stoker::recipe::gpu
