// SPDX-License-Identifier: Apache-2.0
// Decoding of files with several scans, sequential or progressive.
#pragma once
#include "jpeg.hpp"
#include "jpeg_picture.hpp"

namespace stoker::jpeg {

Status decode_multiple(const uint8_t* data, size_t size, const Info& info, const Target& target, Scratch& scratch);

}  // namespace stoker::jpeg
