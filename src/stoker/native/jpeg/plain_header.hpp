// SPDX-License-Identifier: Apache-2.0
// Recognition of plain headers, for which the result of Pillow's reader is known without running it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::jpeg {

struct PlainHeader {
  int32_t width = 0, height = 0, components = 0;
  uint32_t end = 0;  // offset of the entropy-coded bytes
};

// Read the header of the file that begins with these bytes. Return true if the header is complete, `decode` can decode
// the file, and Pillow's reader, which examines more segments than a decoder needs, is certain to accept it without an
// error, a warning or another image class: one or three components, contiguous segments, no EXIF data, no image
// resources, no further pictures. All other files must be read by Pillow.
bool read_plain_header(const uint8_t* data, size_t size, PlainHeader& out);

}  // namespace stoker::jpeg
