// SPDX-License-Identifier: Apache-2.0
// BLAKE2b without a key (RFC 7693), for digests that Python's hashlib computes too.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

// Return the digest of `size` bytes, of 16 bytes.
std::array<uint8_t, 16> blake2b_128(const uint8_t* data, size_t size);

}  // namespace stoker
