// SPDX-License-Identifier: Apache-2.0
// Damage for which libjpeg only warns and still decodes a picture.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "jpeg/jpeg.hpp"

namespace stoker::jpeg {

struct Damage {
  uint32_t wrong_codes = 0;        // bits that are not a code
  uint32_t early_ends = 0;         // segments of coded data that end before all of their blocks
  uint32_t wrong_restarts = 0;     // restart markers that are missing or out of order
  uint64_t extra_bytes = 0;        // between markers and the data that belong to them
  uint64_t offset = ~uint64_t{0};  // offset of the first damage in the file; all ones without damage
  // During decoding: position in the segment's bytes of the first wrong code that has no offset yet.
  const uint8_t* unplaced = nullptr;

  void note(uint64_t at) { offset = std::min(offset, at); }
};

// Result of checking a whole file. `damage.offset` is that of the first damage, also if the damage is worse than a
// warning.
struct Checked {
  Info info;
  Status status = Status::Unsupported;
  Damage damage;
};

// Decode all coefficients of a file, and only as many pixels as necessary. Files above `max_pixels`, or with too many
// scans for `max_scan_pixels` (jpeg/scan_limit.hpp), are only parsed; their status is Unsupported.
Checked check(const uint8_t* data, size_t size, uint64_t max_pixels, uint64_t max_scan_pixels, Scratch& scratch);

}  // namespace stoker::jpeg
