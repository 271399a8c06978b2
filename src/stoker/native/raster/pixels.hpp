// SPDX-License-Identifier: Apache-2.0
// Pixels of image files, and their conversion to tensors. Values equal those of Pillow's conversions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/tensor.hpp"
#include "jpeg/orientation.hpp"

namespace stoker::raster {

// Result of reading a header. Handover: a file that is left to Pillow. Damaged: an error.
enum class Parsed : uint8_t { Ok, Handover, Damaged };

// Largest width and height, so that no product of sizes overflows.
constexpr uint32_t kMaxExtent = 1 << 28;

// Family of a file's pixels. Table: one byte, the number of a colour. GrayAlpha: one gray byte and one of
// transparency. Colour: three values of colour, and perhaps one of transparency, of 8 or 16 bits. Wide: one gray value
// of 16 bits.
enum class Family : uint8_t { Table, GrayAlpha, Colour, Wide };

// Layout of a row's pixels in memory.
struct Layout {
  Family family = Family::Table;
  uint8_t pixel = 1;           // bytes of a pixel
  uint8_t at[4] = {};          // offsets of red, green, blue and transparency; of gray and transparency; of a Wide
                               // value. Of 16 bits those of the high byte
  int8_t low = 0;              // of 16 bits: offset of the low byte from the high one, 1 or -1. 0: values have 8 bits
  uint8_t own_channels = 1;    // of the format ANY: 1, 2, 3 or 4
  bool gray = true;            // colours of the table have no hue and no transparency
  uint8_t table[256][4] = {};  // red, green, blue, transparency

  // Fill the table with gray values: of `bits` bits, scaled to the full range.
  void set_gray(int bits);
};

// Number of channels of the result. `indices`: the bytes of a table of colours themselves.
int channels(const Layout& layout, jpeg::Format format, bool indices);

// Rows of a picture. `row` is called with ascending numbers and returns a row's pixels, which are valid until the next
// call, or null if the picture is damaged.
class Rows {
 public:
  virtual const uint8_t* row(int32_t y) = 0;

 protected:
  ~Rows() = default;
};

// Wanted part of a picture. `window` refers to the picture at scale 1 / 2^scale_log2, whose pixels are means.
struct Target {
  jpeg::Window window;
  jpeg::Extent whole;  // the picture as stored, at full scale
  jpeg::Turn turn;
  jpeg::Format format;
  int scale_log2;
  bool indices;
  View out;  // [H,W,C] of U8; or of U16 or F32, not with the format YCbCr
};

// Return the reason why `write` leaves the conversion to Pillow, a literal, or null.
const char* refusal(const Layout& layout, jpeg::Format format);

// Number of stored rows that the target needs.
int32_t rows_needed(const Target& target);

// Write the target. Return false if a row is damaged.
bool write(Rows& rows, const Layout& layout, const Target& target, Scratch& scratch);

}  // namespace stoker::raster
