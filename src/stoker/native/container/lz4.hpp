// SPDX-License-Identifier: Apache-2.0
// Blocks of LZ4, without the frame of its files.
#pragma once
#include <cstddef>
#include <cstdint>

#include "container/wire.hpp"

namespace stoker {

// Decompress a block into `bytes` bytes at `to`. Return false if the block is damaged, or is of another size; `to` then
// has undefined contents.
bool decompress_lz4(ByteSpan block, uint8_t* to, size_t bytes);

}  // namespace stoker
