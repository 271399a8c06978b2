// SPDX-License-Identifier: Apache-2.0
// What libjpeg only warns of: damage in spite of which a picture is made.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "jpeg.hpp"

namespace stoker::jpeg {

struct Damage {
  uint32_t wrong_codes = 0;     // bits that are no code
  uint32_t early_ends = 0;      // segments of coded data that end before their blocks do
  uint32_t wrong_restarts = 0;  // restart markers that are missing, or others than were due
  uint64_t extra_bytes = 0;     // between markers and what belongs to them
  uint64_t offset = ~uint64_t{0};  // of the first of these in the file; without one, all ones
  // While decoding: where in the segment's bytes the first wrong code was that has no offset yet.
  const uint8_t* unplaced = nullptr;

  void note(uint64_t at) { offset = std::min(offset, at); }
};

// The result of a look at a whole file. `offset`: of the first damage, also where it is worse than a warning.
struct Checked {
  Info info;
  Status status = Status::Unsupported;
  Damage damage;
};

// Decodes all of a file's coefficients, and no more of its pixels than that takes. Files above `max_pixels` are only
// parsed: their status is Unsupported.
Checked check(const uint8_t* data, size_t size, uint64_t max_pixels, Scratch& scratch);

}  // namespace stoker::jpeg
