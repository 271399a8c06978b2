// SPDX-License-Identifier: Apache-2.0
// GPU row descriptors of recipes: written by gpu_kernels/recipe.cpp, read by recipe.cuh. A row's slot points to its
// steps, which are sent to the device with it. The host has computed all sizes, strides and buffers.
#pragma once
#include <cstdint>

#include "shared/bitmap.hpp"
#include "shared/recipe_ops.hpp"
#include "shared/resample_taps.hpp"
#include "shared/torch_resize_float_sum.hpp"

namespace stoker::recipe::gpu {

constexpr int kThreads = 512;  // threads of a row's block
constexpr int kScratchBuffers = 5;
constexpr int kNumbers = 12;

struct Row {
  uint64_t steps;  // address of an array of Step
  int64_t count;   // number of steps; 0: there is nothing to do
  int64_t work;    // approximate cost, by which the rows are sorted
  int64_t unused;
};

// One step. `number` has the parameters of the recipe's step that have no field of their own, in the recipe's order and
// without the output's size.
struct Step {
  Op op;
  int32_t kind;    // generation, border, sampling, walk or filter; for Store and Patch: bytes of a value
  Bitmap in, out;  // for Store and Patch only the memory of `out` is set
  double number[kNumbers];
  uint64_t extra;                     // address of tables, weights, points, or of one of the structures below
  uint64_t scratch[kScratchBuffers];  // buffers for intermediate results
};

// Computation of source positions in Affine; see warp.hpp. A scaling uses Steps.
enum class Walk : int32_t { Linear, Fixed, Steps };

// `extra` of Resize. Scratch buffers: vertical taps, horizontal taps, vertical weights, horizontal weights, and the
// image between the passes.
struct Axes {
  resample::Window vertical, horizontal;
  int64_t vertical_first;
};

// `extra` of TorchResize. Scratch buffer 0 is the image between the passes. An axis without pairs keeps its size.
struct PairAxis {
  uint64_t start, pairs;  // arrays of int32: one start per output; `most` pairs per output
  int64_t most, precision;
};
struct PairAxes {
  PairAxis horizontal, vertical;
};

// `extra` of TorchResizeFloats (torch/resize_float_taps.hpp). With smoothing, scratch buffer 0 is the image of floats
// between the passes.
struct FloatAxis {
  uint64_t index, count, weights;  // arrays of int32, int32 and float
  int64_t max_taps;
};
struct FloatAxes {
  FloatAxis horizontal, vertical;
  torch_resize::Way way;
};

// `extra` of Mix: an array of number[0] terms. Tables have 256 floats, per channel if `per_channel` is set.
struct Term {
  Bitmap image;
  uint64_t table;
  int64_t per_channel;
};

// `extra` of Blend is the Bitmap of the other image.

// `extra` of Blur. Scratch buffers 0 and 1 are images between the passes.
struct Boxes {
  int64_t passes;
  int64_t radius[2];  // horizontal, vertical; -1: no pass along this axis
  uint32_t whole[2], part[2];
};

}  // namespace stoker::recipe::gpu
