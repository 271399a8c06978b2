// SPDX-License-Identifier: Apache-2.0
#include "container/lz4.hpp"

#include <cstring>

namespace stoker {

namespace {

constexpr size_t kLongest = 15;  // of a length in the token; further bytes are added to it
constexpr size_t kLeastMatch = 4;

// Add the further bytes of a length. Return false if the block ends within them.
bool read_length(const uint8_t*& at, const uint8_t* end, size_t& length) {
  if (length != kLongest) return true;
  uint8_t byte = 255;
  while (byte == 255) {
    if (at == end) return false;
    byte = *at++;
    length += byte;
  }
  return true;
}

}  // namespace

// A block is a list of sequences: a token with two lengths, literal bytes, and a copy of earlier output. The last
// sequence has literal bytes only.
bool decompress_lz4(ByteSpan block, uint8_t* to, size_t bytes) {
  const uint8_t *at = block.data, *const end = at + block.size;
  size_t have = 0;
  while (at != end) {
    const uint8_t token = *at++;
    size_t literals = token >> 4;
    if (!read_length(at, end, literals)) return false;
    if (literals > static_cast<size_t>(end - at) || literals > bytes - have) return false;
    if (literals > 0) std::memcpy(to + have, at, literals);
    at += literals;
    have += literals;
    if (at == end) return have == bytes;
    if (end - at < 2) return false;
    const size_t distance = at[0] | size_t{at[1]} << 8;
    at += 2;
    size_t match = token & kLongest;
    if (!read_length(at, end, match)) return false;
    match += kLeastMatch;
    if (distance == 0 || distance > have || match > bytes - have) return false;
    const uint8_t* from = to + have - distance;
    if (distance >= match) std::memcpy(to + have, from, match);
    else
      for (size_t i = 0; i < match; ++i) to[have + i] = from[i];  // the copy repeats itself
    have += match;
  }
  return false;
}

}  // namespace stoker
