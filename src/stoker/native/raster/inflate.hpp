// SPDX-License-Identifier: Apache-2.0
// Decompression of zlib streams (RFC 1950, RFC 1951).
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::raster {

// Readable bytes that must follow the compressed data, and writable ones that must follow the result.
constexpr size_t kInflateInputPadding = 64, kInflateOutputPadding = 640;

// Upper bound of the ratio of decompressed to compressed bytes: 258 bytes take two bits at least.
constexpr uint64_t kMaxInflateRatio = 1032;

enum class Inflated : uint8_t {
  Ok,         // the stream ended, and its checksum is right
  Full,       // `wanted` bytes were written, and the stream has more; its checksum was not read
  Truncated,  // the data end before the stream does
  Damaged,    // `reason` says how
};

struct InflateResult {
  Inflated status;
  size_t bytes;        // decompressed, at most `wanted`
  const char* reason;  // a literal
};

// Decompress at most `wanted` bytes to `to`. The memory must have the paddings above. Never reads or writes outside of
// it, whatever the data are.
InflateResult inflate_zlib(const uint8_t* from, size_t size, uint8_t* to, size_t wanted);

}  // namespace stoker::raster
