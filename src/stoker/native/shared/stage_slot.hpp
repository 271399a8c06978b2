// SPDX-License-Identifier: Apache-2.0
// GPU row descriptors of stages: written by gpu_kernels/stage.cpp, read by stage.cuh. A row's descriptor consists of a
// Slot, the interpolator's slot (none, ResampleSlot, AffineSlot or ProjectSlot), a Port per input and output, and the
// uniforms, 8 bytes each, converted to the type in which the program uses them.
#pragma once
#include <cstdint>

#include "shared/planar_image.cuh"
#include "shared/resample_taps.hpp"

namespace stoker::stage {

constexpr int kAxes = 8;
constexpr int kThreads = 256;  // threads of a block
// A block computes a part of a row without an interpolator: a number of elements that all rows of a launch share. A block takes
// as long to find its part as to copy a few thousand bytes, so parts are as large as leaves a GPU enough blocks.
constexpr int64_t kLeastPart = 4096, kMostPart = 65536, kMostPartBytes = 256 << 10;
constexpr int64_t kPartsWanted = 2048;
// Elements of a part, for a batch of `elements` of which each reads and writes `bytes`.
constexpr int64_t part_elements(int64_t elements, int64_t bytes) {
  const int64_t fitting = kMostPartBytes / bytes / kLeastPart * kLeastPart;
  const int64_t most = fitting < kLeastPart ? kLeastPart : fitting < kMostPart ? fitting : kMostPart;
  const int64_t wanted = (elements / kPartsWanted + kLeastPart - 1) / kLeastPart * kLeastPart;
  return wanted < kLeastPart ? kLeastPart : wanted < most ? wanted : most;
}
// Lanes of a part, in a row whose lanes have `inner` elements.
constexpr int64_t part_lanes(int64_t part, int64_t inner) {
  return inner == 1 ? part : part > inner ? part / inner : 1;
}
// A block computes tiles of a sampled row. A tile has kTileWidth by kTileHeight pixels, of which a thread computes
// kTileRows in one column.
constexpr int kTileWidth = 32;
constexpr int kTileRows = 8;
constexpr int kTileHeight = kThreads / kTileWidth * kTileRows;
// Where a thread computes pairs of neighbouring pixels, a tile has up to four times the rows. All tiles of a column
// have the same height.
constexpr uint32_t pair_tiles(uint32_t height) { return (height + 4 * kTileHeight - 1) / (4 * kTileHeight); }
constexpr uint32_t pair_tile_rows(uint32_t height) {
  const uint32_t each = 16 * pair_tiles(height);
  return (height + each - 1) / each * 16;
}

// Extents of an axis of adjacent elements that becomes part of the lanes: the channels of an RGB pixel, which a flip or a
// transposition moves together, and the numbers of a point in programs with coordinates, which keep the axis from being
// merged with others.
constexpr int kPixel = 3, kPoint = 2;

// Tile of a block that computes both passes of a resampling: kTileLines columns (rows if the vertical pass comes
// first); ResampleScratch has the extent along the other axis. The image between the passes holds the tile's source
// positions on that axis and the positions that the last weights reach beyond them. Its pitch lets the 32 lanes of a
// warp read from different banks.
constexpr int kTileLines = 32;
constexpr int kTilePositions = 336;
constexpr int kPositionsBeyond = 40;
constexpr int kLeastWidth = 8;  // minimum width of the source, whose rows then have four words

struct Slot {
  int64_t lanes;  // 0: there is nothing to do
  int32_t axes;
  // For a sampled row:
  int16_t words;          // pixels of the only output are words, all of whose bytes may be written
  int16_t pairs;          // horizontal neighbours are adjacent in all outputs, so that one store can write both
  int64_t extent[kAxes];  // innermost first; for a sampled row x, y and, in flat programs, the channels
  int64_t inner;          // elements of a lane that a flat program without an interpolator computes one by one
};

struct Port {
  uint64_t data;
  int64_t channel;        // stride of the channels, or of a lane's inner elements; all strides are in bytes
  int64_t stride[kAxes];  // strides of the axes, innermost first
};

// Image that the interpolator reads.
struct Source {
  uint64_t data;
  int64_t height, width, channels;
  int64_t row, pixel, channel;  // strides
};

struct ResampleSlot {
  Source source;
  resample::Window vertical, horizontal;
  int64_t first_row, end_row;  // source rows that the vertical filter reads; likewise columns
  int64_t first_column, end_column;
  int64_t vertical_first;
  int32_t left, top;    // position of the source in `image`
  planar::Image image;  // if set, it is read instead of `source.data`

  bool picks(bool is_vertical) const {
    return (is_vertical ? vertical : horizontal).filter == resample::Filter::Nearest;
  }
  bool two_passes() const { return !picks(true) && !picks(false); }
  bool planar() const { return image.at != 0; }
  // Height of the image between the two passes.
  int64_t between_height() const { return vertical_first ? vertical.out : end_row - first_row; }
  int64_t between_width() const { return vertical_first ? end_column - first_column : horizontal.out; }
  // Pitch in pixels of the resampled image that a single kernel computes. A pixel has four bytes, and pixels are stored
  // in pairs.
  int64_t resampled_pitch() const { return (horizontal.out + 1) & ~int64_t{1}; }
  // Pixels of three bytes are stored in four, so that one access moves a pixel.
  int64_t between_pixel(int64_t element_bytes) const {
    return element_bytes == 1 && source.channels == 3 ? 4 : element_bytes * source.channels;
  }
};

// Computation of source positions in an affine interpolator; see warp/warp.hpp.
enum class Walk : int64_t { Linear, Scale, Fixed, Steps };

// Shift of an image by whole pixels, whose lines are contiguous in the source and in the output. Sizes are in bytes.
struct Shift {
  int64_t line, source_line;  // sizes of a line of the output, and of the source; 0: the sampling is no such shift
  int64_t left, up;           // position in the source of the output's first byte and line
  uint64_t fill;              // four bytes of elements outside of the source
};
// A block moves kShiftChunks times as many chunks of 16 bytes as it has threads. Lines begin at any byte of a chunk.
constexpr int64_t kShiftChunks = 8;
constexpr uint32_t shift_chunks(int64_t line) { return static_cast<uint32_t>((line + 15 + 15) / 16); }
constexpr uint32_t shift_blocks(int64_t line, int64_t height) {
  constexpr int64_t kEach = kShiftChunks * kThreads;
  return static_cast<uint32_t>((shift_chunks(line) * height + kEach - 1) / kEach);
}

struct AffineSlot {
  Source source;
  double matrix[6];
  double fill;  // in the image's element type
  Walk walk;
  int64_t clamp;          // outside of the image: the nearest pixel of the edge; else `fill`
  int64_t height, width;  // of the sampled area
  // Bytes per pixel, three of which are channels, for sampling of 8-bit RGB images of at least 2 by 2 pixels whose
  // coordinates are below 2^18 and offsets below 2^31, if not by Steps. 0 for all other cases.
  int64_t quick;
  Shift shift;  // of a stage that stores what it samples
};

// Slot of projective sampling: an image of bytes with up to four channels.
struct ProjectSlot {
  Source source;
  double matrix[8];
  uint8_t fill[8];  // value outside of the image, by channel; four are used
};

// Addresses of a row's tables and of its image between two passes; filled when the batch is launched.
struct ResampleScratch {
  uint64_t vertical_taps, vertical_weights, horizontal_taps, horizontal_weights;
  uint64_t between;                          // or the resampled image
  int64_t vertical_pitch, horizontal_pitch;  // weights, or groups of weights, per output
  int64_t tile_rows, tile_columns;           // tile size if one kernel computes both passes; 0: one kernel per pass
  int64_t direct;  // the kernel of both passes writes to the stage's only output, and the stage has nothing left to do
};
// The three bytes of each of four adjacent weights, from which tiles are computed. An output's first group begins at
// the multiple of four at or below its first position.
struct alignas(16) WeightGroup {
  uint32_t low, middle, high, unused;
};
struct alignas(8) PixelPair {
  uint32_t first, second;
};
struct AffineScratch {
  uint64_t columns, rows;  // Scale: source column and row, int32, per output column and row. Steps: per pixel
};

}  // namespace stoker::stage
