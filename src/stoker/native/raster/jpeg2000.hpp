// SPDX-License-Identifier: Apache-2.0
// JPEG 2000 files (ISO/IEC 15444-1) whose components are their pixels, by OpenJPEG: no palette, no subsampling, sRGB or
// gray, unsigned numbers of 8 to 16 bits. All others are left to Pillow, which calls the same library under Python's lock,
// because its decoder reads from a Python object.
#pragma once
#include <cstddef>
#include <cstdint>

#include "raster/pixels.hpp"

namespace stoker::raster::jpeg2000 {

struct Header {
  int32_t width = 0, height = 0;
  uint8_t channels = 0, bits = 0;
  bool boxes = false;  // whether the codestream is in a file of boxes
};

bool is_jpeg2000(const uint8_t* data, size_t size);

// Read the header. If the result is not Ok, `reason` says why, a literal. No file is Damaged: Pillow decides.
Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason);

Layout layout_of(const Header& header);

// Decode the target. Return false if OpenJPEG does not accept the file. `scratch`: four areas.
bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch);

}  // namespace stoker::raster::jpeg2000
