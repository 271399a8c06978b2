// SPDX-License-Identifier: Apache-2.0
// PNG files (ISO/IEC 15948): all kinds of colour, bit depths and interlacing; no animations.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "raster/pixels.hpp"

namespace stoker::raster::png {

// Data of the chunks that decoding needs.
struct Header {
  int32_t width = 0, height = 0;
  uint8_t bits = 0, colours = 0;  // per sample, and the kind of colour as in the file
  bool interlaced = false;
  uint8_t orientation = 1;         // Exif's
  bool other_orientation = false;  // text that Pillow may read an orientation from
  const uint8_t* palette = nullptr;
  const uint8_t* alphas = nullptr;  // transparency of the palette
  uint32_t palette_entries = 0, alpha_entries = 0;
  size_t data = 0;  // offset of the first chunk of image data
};

bool is_png(const uint8_t* data, size_t size);

// Read the chunks; those before the image data must have right checksums. If the result is not Ok, `reason` says why, a
// literal.
Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason);

// Return the layout of the rows that `decode` makes.
Layout layout_of(const Header& header);

// Decode the target. Return an error, or an empty text. The checksums of the image data are checked; that of the
// decompressed ones if the target needs the last row. Takes memory for the
// pixels only if the file has enough data for them. `scratch`: four areas.
std::string decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
                   Scratch* scratch);

}  // namespace stoker::raster::png
