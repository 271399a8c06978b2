// SPDX-License-Identifier: Apache-2.0
// Units of a packet of H.264 or HEVC, for the parser of a GPU's video engines (ISO/IEC 14496-15 4.3, ITU-T H.264 B.1).
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace stoker::nvdec {

// Append a packet whose units follow their lengths, of 1 to 4 bytes, with start codes in the place of the lengths.
// Throw std::runtime_error if a length is wrong; `to` has some of the units then.
inline void append_units(const uint8_t* data, size_t bytes, size_t length_bytes, std::vector<uint8_t>& to) {
  for (size_t at = 0; at < bytes;) {
    if (bytes - at < length_bytes) throw std::runtime_error("the packet ends within the length of a unit");
    size_t length = 0;
    for (size_t i = 0; i < length_bytes; ++i) length = length << 8 | data[at + i];
    at += length_bytes;
    if (length > bytes - at) throw std::runtime_error("a unit is longer than its packet");
    constexpr uint8_t kStart[] = {0, 0, 0, 1};
    to.insert(to.end(), kStart, kStart + sizeof kStart);
    to.insert(to.end(), data + at, data + at + length);
    at += length;
  }
}

}  // namespace stoker::nvdec
