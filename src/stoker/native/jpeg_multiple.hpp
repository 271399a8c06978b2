// SPDX-License-Identifier: Apache-2.0
// Decoding of files with several scans, sequential or progressive.
#pragma once
#include "jpeg.hpp"
#include "jpeg_picture.hpp"

namespace stoker::jpeg {

Status decode_multiple(const uint8_t* data, size_t size, const Info& info, const Target& target, Scratch& scratch);

// Coefficients for a device that does the rest.
struct Coefficients {
  // Of each component the blocks that the window needs, row after row: 64 in natural order, or, where a block becomes a
  // single sample, the DC alone. Null where none is needed. The memory must be zero before.
  int16_t* plane[kMaxComponents] = {};
  // Where the quantisers are in the file; 0: there is none.
  uint32_t quantiser[kMaxComponents] = {};
  bool wide[kMaxComponents] = {};
};

// Makes only the coefficients; `target` needs no destination. Of results other than Ok, nothing is to be used.
Status decode_coefficients(const uint8_t* data, size_t size, const Info& info, const Target& target, Coefficients& out,
                           Scratch& scratch);

}  // namespace stoker::jpeg
