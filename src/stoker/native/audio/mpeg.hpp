// SPDX-License-Identifier: Apache-2.0
// Frames of MPEG audio, layer III. Sources: ISO/IEC 11172-3 2.4.1 and 2.4.2, ISO/IEC 13818-3 2.4.1.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace stoker::mpeg {

struct Frames {
  int64_t count;
  size_t end;  // byte after the last one
};

// Check the frames from a byte on, until `most` of them have been found (-1: all), or until bytes that are no frame.
// Their rates and channels are those of the first one, their headers and side information are possible, and checksums
// match where the encoder wrote them. `*error` names the byte of the frame that fails.
Frames check(const uint8_t* data, size_t size, size_t start, int64_t most, std::string* error);

}  // namespace stoker::mpeg
