// SPDX-License-Identifier: Apache-2.0
// TIFF files (TIFF 6.0): strips or tiles, of pixels or of planes, with samples of 8 or 16 bits, without compression or with
// LZW, Deflate or PackBits. All others are left to Pillow.
#pragma once
#include <cstddef>
#include <cstdint>

#include "raster/pixels.hpp"

namespace stoker::raster::tiff {

// Values of the first directory that decoding needs.
struct Header {
  int32_t width = 0, height = 0;
  int32_t block_width = 0, block_height = 0;  // of a tile, or of a strip, which is as wide as the picture
  bool tiles = false;                         // all of them have all rows, also the last ones
  bool planes = false;                        // the samples are in planes, one after the other
  bool little = false;                        // byte order
  uint8_t bits = 8, samples = 1;              // of a pixel
  uint16_t compression = 1;
  bool differences = false;  // the values of a row are differences from the pixel before
  uint8_t orientation = 1;
  bool other_orientation = false;  // text that Pillow may read an orientation from
  size_t offsets = 0, sizes = 0;   // positions of the tables of strips or tiles
  uint8_t offset_bytes = 4, size_bytes = 4;
  const uint8_t* palette = nullptr;  // 256 values of 16 bits of red, of green and of blue
  uint8_t extra = 0;                 // meaning of a sample after the colours: see kAlpha, kUnspecified
};

bool is_tiff(const uint8_t* data, size_t size);

// Read the first directory. If the result is not Ok, `reason` says why, a literal. No file is Damaged: Pillow decides.
Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason);

// Return the layout of the rows that `decode` makes.
Layout layout_of(const Header& header);

// Decode the strips or tiles that the target needs. Return false if their data are damaged or missing. `scratch`: four areas.
bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch);

}  // namespace stoker::raster::tiff
