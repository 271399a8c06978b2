// SPDX-License-Identifier: Apache-2.0
// How a row of a stage describes itself to the GPU: written by stage_gpu.cpp, read by stage.cuh. One row's slot is
//   Slot, then the sampler's slot (none, ResampleSlot or AffineSlot), then a Port per input and output, then the
//   uniforms, 8 bytes each, converted to the type they are used in.
#pragma once
#include <cstdint>

#include "../resample_taps.hpp"

namespace stoker::stage {

constexpr int kAxes = 8;
constexpr int kThreads = 256;     // of a block
constexpr int kTileLanes = 4096;  // that a block computes of a row without a sampler
// A block computes tiles of a sampled row: kTileWidth by kTileHeight pixels, of which a thread does kTileRows in a column.
constexpr int kTileWidth = 32;
constexpr int kTileRows = 8;
constexpr int kTileHeight = kThreads / kTileWidth * kTileRows;

struct Slot {
  int64_t lanes;          // 0: nothing is to be done
  int32_t axes, unused;
  int64_t extent[kAxes];  // innermost first; a sampled row's are x, y and, of flat programs, the channels
};

struct Port {
  uint64_t data;
  int64_t channel;        // stride of channels; all strides are in bytes
  int64_t stride[kAxes];  // innermost first
};

// The image that is sampled.
struct Source {
  uint64_t data;
  int64_t height, width, channels;
  int64_t row, pixel, channel;  // strides
};

struct ResampleSlot {
  Source source;
  resample::Window vertical, horizontal;
  int64_t first_row, end_row;    // of the source, that the vertical filter reads at all; likewise columns
  int64_t first_column, end_column;
  int64_t vertical_first, unused;

  bool picks(bool is_vertical) const {
    return (is_vertical ? vertical : horizontal).filter == resample::Filter::Nearest;
  }
  bool two_passes() const { return !picks(true) && !picks(false); }
  // Of the image between two passes.
  int64_t between_height() const { return vertical_first ? vertical.out : end_row - first_row; }
  int64_t between_width() const { return vertical_first ? end_column - first_column : horizontal.out; }
  // Three bytes get room for four, so that one access moves them.
  int64_t between_pixel(int64_t element_bytes) const {
    return element_bytes == 1 && source.channels == 3 ? 4 : element_bytes * source.channels;
  }
};

enum class Walk : int64_t { Linear, Scale, Fixed, Steps };  // how an affine sampler finds its pixels; see warp.hpp

struct AffineSlot {
  Source source;
  double matrix[6];
  double fill;
  Walk walk;
  int64_t clamp;           // outside: the nearest pixel of the edge; else `fill`
  int64_t height, width;   // of what is sampled
};

// Where a row's tables and its image between two passes lie; made when the batch is launched.
struct ResampleRoom {
  uint64_t vertical_taps, vertical_weights, horizontal_taps, horizontal_weights;
  uint64_t between;
  int64_t vertical_pitch, horizontal_pitch;  // weights per output
  int64_t unused;
};
struct AffineRoom {
  uint64_t columns, rows;  // Scale: the source column and row, int32, per output column and row. Steps: per pixel
};

// One block's work: lanes [tile * kTileLanes, (tile + 1) * kTileLanes) of a row, or a tile of pixels, row by row.
struct Work {
  uint32_t row, tile;
};

}  // namespace stoker::stage
