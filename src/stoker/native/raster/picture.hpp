// SPDX-License-Identifier: Apache-2.0
// Image files of all formats but JPEG that are decoded natively.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "raster/gif.hpp"
#include "raster/jpeg2000.hpp"
#include "raster/png.hpp"
#include "raster/raw_rows.hpp"
#include "raster/tiff.hpp"
#include "raster/webp.hpp"

namespace stoker::raster {

enum class Kind : uint8_t { None, Png, Bmp, Pnm, Tiff, Webp, Jpeg2000, Gif };

// Return the format of a file by its first bytes.
Kind kind_of(const uint8_t* data, size_t size);

// Header of a file.
struct Picture {
  Kind kind = Kind::None;
  int32_t width = 0, height = 0;   // as stored
  uint8_t orientation = 1;         // Exif's
  bool other_orientation = false;  // the file may state an orientation in a way that only Pillow reads
  Layout layout;
  png::Header png;
  tiff::Header tiff;
  webp::Header webp;
  jpeg2000::Header jpeg2000;
  gif::Header gif;
  RawRows raw;  // of bitmaps and portable maps
};

// Read a header. If the result is not Ok, `error` says why. `data` must outlive the picture.
Parsed parse(const uint8_t* data, size_t size, Picture& picture, std::string& error);

// Decode the target of a picture that was parsed. If the result is not Ok, `error` says why. `scratch`: four areas.
Parsed decode(const uint8_t* data, size_t size, const Picture& picture, const Target& target, Scratch* scratch,
              std::string& error);

}  // namespace stoker::raster
