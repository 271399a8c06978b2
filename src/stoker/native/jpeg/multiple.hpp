// SPDX-License-Identifier: Apache-2.0
// Decoding of files with several scans, sequential or progressive.
#pragma once
#include "jpeg/jpeg.hpp"
#include "jpeg/picture.hpp"

namespace stoker::jpeg {

Status decode_multiple(const uint8_t* data, size_t size, const Info& info, const Target& target, Scratch& scratch);

// Decoded coefficients for a device that does the remaining steps.
struct Coefficients {
  // Blocks of each component that the window needs, row by row: 64 coefficients in natural order, or the DC alone where
  // a block becomes a single sample. Null if the component is not needed. The memory must be zero before.
  int16_t* plane[kMaxComponents] = {};
  // Offsets of the quantisers in the file; 0: there is none.
  uint32_t quantiser[kMaxComponents] = {};
  bool wide[kMaxComponents] = {};
};

// Decode only the coefficients; `target` needs no destination. If the result is not Ok, the coefficients must not be
// used.
Status decode_coefficients(const uint8_t* data, size_t size, const Info& info, const Target& target, Coefficients& out,
                           Scratch& scratch);

}  // namespace stoker::jpeg
