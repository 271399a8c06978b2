// SPDX-License-Identifier: Apache-2.0
// Files that store pixels without compression: Windows bitmaps (BMP) and portable maps (PNM).
#pragma once
#include <cstddef>
#include <cstdint>

#include "raster/pixels.hpp"

namespace stoker::raster {

// Place of the rows in a file.
struct RawRows {
  int32_t width = 0, height = 0;
  size_t offset = 0;  // of the first stored row
  int64_t pitch = 0;  // bytes from one row to the next
  bool bottom_up = false;
  bool scaled = false;     // values are parts of `largest`, of which pixels are made when rows are read
  uint32_t largest = 255;  // value of a portable map
  Layout layout;           // of the stored rows
};

namespace bmp {

bool is_bmp(const uint8_t* data, size_t size);

// Read the header: of 8 bits with a palette of 256 colours, 24 or 32 bits without compression. Others are left to
// Pillow, with a literal reason.
Parsed parse(const uint8_t* data, size_t size, RawRows& rows, const char*& reason);

}  // namespace bmp

namespace pnm {

bool is_pnm(const uint8_t* data, size_t size);

// Read the header: of binary gray values (P5) and colours (P6). Others are left to Pillow, with a literal reason.
Parsed parse(const uint8_t* data, size_t size, RawRows& rows, const char*& reason);

// Write the target from a file that has all rows. Values become parts of 255 or 65535, rounded as by Pillow.
void decode(const uint8_t* data, const RawRows& rows, const Target& target, Scratch* scratch);

}  // namespace pnm

// Return whether a file of `size` bytes has all rows.
bool has_all_rows(const RawRows& rows, size_t size);

// Write the target from a file that has all rows.
void write_raw(const uint8_t* data, const RawRows& rows, const Target& target, Scratch& scratch);

}  // namespace stoker::raster
