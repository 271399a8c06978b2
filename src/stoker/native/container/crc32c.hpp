// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), which TFRecord files store for every record.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker {

// Return the CRC-32C of bytes that follow others with the CRC `before`. All instruction sets give the same number.
uint32_t crc32c(const uint8_t* data, size_t size, uint32_t before = 0);

// Return the form in which TFRecord files store a CRC.
constexpr uint32_t masked_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace stoker
