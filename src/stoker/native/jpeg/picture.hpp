// SPDX-License-Identifier: Apache-2.0
// Pixels from coefficients: which blocks and samples a window needs, inverse DCT into rings of two MCU rows, upsampling
// and colour conversion. Shared by the decoders of one and of several scans.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/carver.hpp"
#include "jpeg/idct.hpp"
#include "jpeg/jpeg.hpp"
#include "jpeg/rows.hpp"
#include "jpeg/ticks.hpp"

namespace stoker::jpeg {

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

struct Range {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  bool has(int i) const { return i >= begin && i < end; }
  Range clipped(Range to) const {
    const int b = std::max(begin, to.begin);
    return {b, std::max(b, std::min(end, to.end))};
  }
};

// Upsampling of a component to full size, chosen by ratio as in libjpeg.
enum class Upsample : uint8_t { None, Width, Height, Both, Repeat };

constexpr int kLeftMargin = 32;  // of a ring row: space for the sample left of the image, and aligned stores

// One component within the window.
struct Plane {
  int h = 1, v = 1, fx = 1, fy = 1;
  int size = 8;               // samples per side of a block: fewer when decoding to a smaller scale
  int width = 0, height = 0;  // samples, without padding
  Upsample upsample = Upsample::None;
  Range columns, rows;            // needed blocks; none if the format does not use the component
  Range held_columns, held_rows;  // blocks that `coefficients` and `ends` hold now
  int stride = 64;                // coefficients kept per block: all, or the DC alone
  int16_t* coefficients = nullptr;
  uint8_t* ends = nullptr;
  uint8_t* ring = nullptr;
  int ring_rows = 0;                         // a power of two
  int window_begin = 0, window_samples = 0;  // samples that the window's columns lie in, counted from columns.begin
  int window_skip = 0;                       // full-size samples of the first of them that are left of the window
  ptrdiff_t pitch = 0;
  uint8_t* full = nullptr;  // one upsampled row
  InverseDct inverse_dct = nullptr;
  alignas(32) int16_t quantiser[64] = {};

  bool needed() const { return columns.size() > 0; }
  int blocks_wide() const { return ceil_div(width, size); }
  int blocks_high() const { return ceil_div(height, size); }
  // Index of a held row's first block.
  size_t block_index(int row) const {
    return static_cast<size_t>(row - held_rows.begin) * static_cast<size_t>(held_columns.size());
  }
  // Address of sample column size * columns.begin in sample row y.
  uint8_t* row(int y) const { return ring + pitch * (y & (ring_rows - 1)) + kLeftMargin; }
};

struct Target {
  Window window;
  Format format;
  int scale_log2;
  uint8_t* dst;
  ptrdiff_t pitch;
  Ticks* ticks;                   // null: not requested
  Damage* damage;                 // null: not requested
  const RowSink* sink = nullptr;  // then `dst` and `pitch` are unused
};

class Picture {
 public:
  Picture(const Info& info, const Target& target);

  // Take memory for everything but the planes' coefficients.
  void carve(Carver& pieces);
  // Take memory for the blocks of `mcu_columns` MCUs; it holds the zeros that `transform` expects and leaves.
  void carve_blocks(Carver& pieces, int mcu_columns);

  int planes() const { return info_.components; }
  int mcu_rows() const { return ceil_div(info_.height, 8 * info_.v_max); }
  int mcu_columns() const { return ceil_div(info_.width, 8 * info_.h_max); }
  // Number of the frame's MCU rows up to the last one that the window needs.
  int needed_mcu_rows() const;

  // Apply the inverse DCT to the held blocks of an MCU row.
  void transform(int mcu_row);
  // Write the pixels that are complete after an MCU row, or all remaining ones after the `last`.
  void finish_row(int mcu_row, bool last);
  // Write defined pixels if nothing can be decoded for lack of tables.
  Status give_up();

  Plane plane[kMaxComponents];

 private:
  void plan_plane(int index);
  uint8_t* destination(int y) const;
  void pass_on(int y);
  void extend_edges(const Plane& p, int block_row);
  const uint8_t* full_row(const Plane& p, int y);
  void write_pixels(const uint8_t* const* row, uint8_t* dst);
  void write_planes(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst);
  void write_inks(const uint8_t* const* row, uint8_t* dst);

  Info info_;
  Target to_;
  const RowKernels& rows_;
  int16_t* sums_ = nullptr;
  uint8_t* neutral_ = nullptr;
  uint8_t* pixels_ = nullptr;
  int size_;     // samples per block side of the largest components
  int lag_ = 0;  // rows at the end of an MCU row that need the next MCU row
  int next_y_ = 0;
};

}  // namespace stoker::jpeg
