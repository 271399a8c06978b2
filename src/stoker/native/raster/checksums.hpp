// SPDX-License-Identifier: Apache-2.0
// Checksums of PNG files: CRC-32 of chunks and Adler-32 of their decompressed data.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::raster {

// Return the CRC-32 of ISO 3309 of the data.
uint32_t crc32(const uint8_t* data, size_t size);

uint32_t adler32(const uint8_t* data, size_t size);

}  // namespace stoker::raster
