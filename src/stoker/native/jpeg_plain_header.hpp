// SPDX-License-Identifier: Apache-2.0
// Headers that need no second look: what Pillow would find in them is known without asking it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::jpeg {

struct PlainHeader {
  int32_t width = 0, height = 0, components = 0;
  uint32_t end = 0;  // where the entropy-coded bytes begin
};

// Reads the header of the file that begins with these bytes. True if all of it is there, `decode` does the file, and
// Pillow's reader, which looks into more segments than a decoder needs, surely takes it without an error, a warning or
// another class of image: one or three components, segments that follow each other, no EXIF data, no image resources,
// no further pictures. All other files are Pillow's to judge.
bool read_plain_header(const uint8_t* data, size_t size, PlainHeader& out);

}  // namespace stoker::jpeg
