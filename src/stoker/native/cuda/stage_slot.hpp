// SPDX-License-Identifier: Apache-2.0
// How a row of a stage describes itself to the GPU: written by stage_gpu.cpp, read by stage.cuh. One row's slot is
//   Slot, then the sampler's slot (none, ResampleSlot, AffineSlot or ProjectSlot), then a Port per input and output, then the
//   uniforms, 8 bytes each, converted to the type they are used in.
#pragma once
#include <cstdint>

#include "../resample_taps.hpp"
#include "planar_image.cuh"

namespace stoker::stage {

constexpr int kAxes = 8;
constexpr int kThreads = 256;     // of a block
constexpr int kTileLanes = 4096;  // that a block computes of a row without a sampler
// A block computes tiles of a sampled row: kTileWidth by kTileHeight pixels, of which a thread does kTileRows in a column.
constexpr int kTileWidth = 32;
constexpr int kTileRows = 8;
constexpr int kTileHeight = kThreads / kTileWidth * kTileRows;
// Where a thread makes pairs of neighbours, a tile has four times the rows at most, and all tiles of a column as many.
constexpr uint32_t pair_tiles(uint32_t height) { return (height + 4 * kTileHeight - 1) / (4 * kTileHeight); }
constexpr uint32_t pair_tile_rows(uint32_t height) {
  const uint32_t each = 16 * pair_tiles(height);
  return (height + each - 1) / each * 16;
}

// A block that makes both passes of a resampling: so many columns, or rows where the vertical pass is first, and of the
// other axis what ResampleRoom says. Its image between the passes has room for the source's positions on that axis, and for
// what the weights' last positions reach beyond them; the pitch lets the 32 lanes of a warp read from as many banks.
constexpr int kTileLines = 32;
constexpr int kTilePositions = 336;
constexpr int kPositionsBeyond = 40;
constexpr int kLeastWidth = 8;  // of its source, whose rows then have four words

struct Slot {
  int64_t lanes;          // 0: nothing is to be done
  int32_t axes;
  // Of a sampled row:
  int16_t words;          // pixels of the only output are words, all of whose bytes may be written
  int16_t pairs;          // neighbours of the width lie beside each other in all outputs, and can be stored at once
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
  int64_t vertical_first;
  int32_t left, top;    // of the source in `image`
  planar::Image image;  // that is read in place of `source.data`, if it is one

  bool picks(bool is_vertical) const {
    return (is_vertical ? vertical : horizontal).filter == resample::Filter::Nearest;
  }
  bool two_passes() const { return !picks(true) && !picks(false); }
  bool planar() const { return image.at != 0; }
  // Of the image between two passes.
  int64_t between_height() const { return vertical_first ? vertical.out : end_row - first_row; }
  int64_t between_width() const { return vertical_first ? end_column - first_column : horizontal.out; }
  // Of the resampled image that one kernel makes, in pixels of four bytes, which are stored in pairs.
  int64_t resampled_pitch() const { return (horizontal.out + 1) & ~int64_t{1}; }
  // Three bytes get room for four, so that one access moves them.
  int64_t between_pixel(int64_t element_bytes) const {
    return element_bytes == 1 && source.channels == 3 ? 4 : element_bytes * source.channels;
  }
};

enum class Walk : int64_t { Linear, Scale, Fixed, Steps };  // how an affine sampler finds its pixels; see warp.hpp

struct AffineSlot {
  Source source;
  double matrix[6];
  double fill;             // in the image's type
  Walk walk;
  int64_t clamp;           // outside: the nearest pixel of the edge; else `fill`
  int64_t height, width;   // of what is sampled
  // Linear sampling of 8-bit RGB, 2 by 2 pixels or more, whose coordinates are below 2^18 and offsets below 2^31: bytes of a
  // pixel, of which three are the channels. 0: any other.
  int64_t quick;
};

// An image of bytes, of up to four channels.
struct ProjectSlot {
  Source source;
  double matrix[8];
  uint8_t fill[8];         // outside, by channel; four are used
};

// Where a row's tables and its image between two passes lie; made when the batch is launched.
struct ResampleRoom {
  uint64_t vertical_taps, vertical_weights, horizontal_taps, horizontal_weights;
  uint64_t between;                          // or the resampled image
  int64_t vertical_pitch, horizontal_pitch;  // weights per output, or groups of them
  int64_t tile_rows, tile_columns;           // of a tile if one kernel makes both passes; 0: each by itself
  int64_t direct;                            // that kernel writes to the stage's only output: there is no more to do
};
// The three bytes of each of four neighbours' weights: what tiles are made with. The first group of an output begins at the
// multiple of four at or before its first position.
struct alignas(16) WeightGroup {
  uint32_t low, middle, high, unused;
};
struct alignas(8) PixelPair {
  uint32_t first, second;
};
struct AffineRoom {
  uint64_t columns, rows;  // Scale: the source column and row, int32, per output column and row. Steps: per pixel
};

// One block's work: lanes [tile * kTileLanes, (tile + 1) * kTileLanes) of a row (of a sampler's tables: kThreads lanes), or a
// tile of pixels, row by row.
struct Work {
  uint32_t row, tile;
};

}  // namespace stoker::stage
