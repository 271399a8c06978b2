// SPDX-License-Identifier: Apache-2.0
// WebP files of one picture, by libwebp. Animations are left to Pillow.
#pragma once
#include <cstddef>
#include <cstdint>

#include "raster/pixels.hpp"

namespace stoker::raster::webp {

struct Header {
  int32_t width = 0, height = 0;
  bool alpha = false;
  uint8_t orientation = 1;         // Exif's
  bool other_orientation = false;  // text that Pillow may read an orientation from
};

bool is_webp(const uint8_t* data, size_t size);

// Read the chunks. If the result is not Ok, `reason` says why, a literal. No file is Damaged: Pillow decides.
Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason);

Layout layout_of(const Header& header);

// Decode the target. Return false if libwebp does not accept the file. `scratch`: four areas.
bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch);

}  // namespace stoker::raster::webp
