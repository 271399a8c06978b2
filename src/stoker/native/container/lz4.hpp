// SPDX-License-Identifier: Apache-2.0
// Blocks of LZ4, without the frame of its files.
#pragma once
#include <cstddef>
#include <cstdint>

#include "container/wire.hpp"

namespace stoker {

// A byte of a block adds at most this many bytes to the output.
constexpr int64_t kMostBytesPerByteOfLz4 = 255;

// Decompress a block into `bytes` bytes at `to`. Return false if the block is damaged, or is of another size; `to` then
// has undefined contents. Nothing outside of both is read or written.
bool decompress_lz4(ByteSpan block, uint8_t* to, size_t bytes);

// The same, with copies of exactly the bytes of each sequence: the plain twin.
bool decompress_lz4_plain(ByteSpan block, uint8_t* to, size_t bytes);

}  // namespace stoker
