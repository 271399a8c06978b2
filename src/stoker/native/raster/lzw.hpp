// SPDX-License-Identifier: Apache-2.0
// Decompression of LZW and PackBits as in TIFF files (TIFF 6.0, sections 13 and 9), and of LZW as in GIF files.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::raster {

// Writable bytes that must follow the result of `decode_lzw` and `decode_gif_lzw`.
constexpr size_t kLzwOutputPadding = 16;

// Upper bounds of the ratio of decompressed to compressed bytes: the longest string of LZW is one byte longer than the
// table has free codes, and its code takes 9 bits at least, or 12 where it is so long; two bytes of PackBits are at most 128.
constexpr uint64_t kMaxLzwRatio = 4096, kMaxPackBitsRatio = 64;

// Decompress at most `wanted` bytes to `to`. Return the number of bytes: fewer where the data end or are damaged. Never
// reads or writes outside of the memory, whatever the data are.
size_t decode_lzw(const uint8_t* from, size_t size, uint8_t* to, size_t wanted);
// `bits`: 2 to 8, of the smallest code of data.
size_t decode_gif_lzw(const uint8_t* from, size_t size, int bits, uint8_t* to, size_t wanted);
size_t decode_pack_bits(const uint8_t* from, size_t size, uint8_t* to, size_t wanted);

}  // namespace stoker::raster
