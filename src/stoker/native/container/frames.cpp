// SPDX-License-Identifier: Apache-2.0
#include "container/frames.hpp"

namespace stoker::recordio {

bool join_parts(uint8_t* data, uint64_t size, uint64_t first, uint64_t& joined) {
  if (first > size) return false;
  joined = first;
  uint64_t at = padded(first);
  for (;;) {
    uint32_t part = 0, length = 0;
    if (at > size || size - at < kHeader || !read_header(data + at, part, length)) return false;
    if (part != kMiddle && part != kLast) return false;
    at += kHeader;
    if (length > size - at) return false;
    // A header is longer than the magic number, so that the data move to the front.
    std::memcpy(data + joined, &kMagic, sizeof kMagic);
    std::memmove(data + joined + sizeof kMagic, data + at, length);
    joined += sizeof kMagic + length;
    if (part == kLast) return true;
    at += padded(length);
  }
}

}  // namespace stoker::recordio
