// SPDX-License-Identifier: Apache-2.0
// First frames of GIF files (GIF87a, GIF89a), with Pillow's conventions: pixels outside of the frame have the transparent
// colour's number, or 0. Files that Pillow reads in an unusual way are left to it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "raster/pixels.hpp"

namespace stoker::raster::gif {

// The first frame, and its place on the screen, which grows to hold it.
struct Header {
  int32_t width = 0, height = 0;  // of the screen
  int32_t x = 0, y = 0, frame_width = 0, frame_height = 0;
  bool interlaced = false;
  bool transparent = false;
  uint8_t clear = 0;                 // number of the transparent colour
  const uint8_t* palette = nullptr;  // red, green, blue. Null: the numbers are gray values
  uint32_t palette_entries = 0;
  uint8_t bits = 0;  // of the smallest code of data
  size_t data = 0;   // offset of the first block of codes
};

bool is_gif(const uint8_t* data, size_t size);

// Read up to the first frame. If the result is not Ok, `reason` says why, a literal. No file is Damaged: Pillow decides.
Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason);

Layout layout_of(const Header& header);

// Decode the target. Return false if the frame is damaged or has missing pixels. `scratch`: four areas.
bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch);

}  // namespace stoker::raster::gif
