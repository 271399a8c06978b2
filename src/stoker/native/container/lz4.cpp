// SPDX-License-Identifier: Apache-2.0
// https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
#include "container/lz4.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace stoker {

namespace {

constexpr size_t kLongest = 15;  // of a length in the token; further bytes are added to it
constexpr size_t kLeastMatch = 4;

// Copies may write up to this many bytes after their end, where the output has them: the next sequence overwrites them.
constexpr size_t kSlack = 32;
// A sequence whose lengths are in its token: 16 bytes are read for up to 14 literals, of which two or more are left for
// the distance, and a match of up to 18 bytes follows.
constexpr size_t kShortInput = 1 + 16, kShortOutput = 14 + 18 + kSlack;

struct Cursor {
  const uint8_t *at, *end;  // of the block
  uint8_t* to;
  size_t have, bytes;  // of the output

  size_t input() const { return static_cast<size_t>(end - at); }
  size_t output() const { return bytes - have; }
};

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

template <size_t kBytes>
void copy_bytes(uint8_t* to, const uint8_t* from) {
  std::memcpy(to, from, kBytes);
}

// Copy kLeast bytes, the most of a token without further lengths, and the rest of `count` bytes in steps. Up to
// kSlack - 1 more bytes are written.
template <size_t kStep, size_t kLeast>
void copy_steps(uint8_t* to, const uint8_t* from, size_t count) {
  for (size_t i = 0; i < kLeast; i += kStep) copy_bytes<kStep>(to + i, from + i);
  for (size_t i = kLeast; i < count; i += kStep) copy_bytes<kStep>(to + i, from + i);
}

void copy_exactly(uint8_t* to, size_t distance, size_t count) {
  const uint8_t* from = to - distance;
  if (distance >= count) std::memcpy(to, from, count);
  else
    for (size_t i = 0; i < count; ++i) to[i] = from[i];  // the copy repeats itself
}

// For each distance below 8: the bytes of a word that belong to the pattern, and the factor that repeats the pattern
// over the word.
struct Pattern {
  uint64_t mask, repeat;
};
constexpr std::array<Pattern, 8> make_patterns() {
  std::array<Pattern, 8> all{};
  for (unsigned distance = 1; distance < 8; ++distance) {
    all[distance].mask = (uint64_t{1} << (8 * distance)) - 1;
    for (unsigned i = 0; i < 8; i += distance) all[distance].repeat |= uint64_t{1} << (8 * i);
  }
  return all;
}
constexpr std::array<Pattern, 8> kPatterns = make_patterns();

// Copy `count` bytes from less than 8 bytes before, by stores of the repeated pattern. Up to kSlack - 1 more bytes are
// written.
void repeat_pattern(uint8_t* to, size_t distance, size_t count) {
  const Pattern& p = kPatterns[distance];
  uint64_t word = 0;
  std::memcpy(&word, to - distance, sizeof word);
  word = (word & p.mask) * p.repeat;
  const uint64_t next = ((word >> (8 * (8 % distance))) & p.mask) * p.repeat;  // the pattern's bytes 8 to 15
  const auto store = [&](size_t at) {
    std::memcpy(to + at, &word, sizeof word);
    std::memcpy(to + at + 8, &next, sizeof next);
  };
  const size_t step = 16 - 16 % distance;
  store(0);
  store(step);
  for (size_t i = 2 * step; i < count; i += step) store(i);
}

// Copy `count` bytes from `distance` bytes before. Up to kSlack - 1 more bytes are written.
void copy_match(uint8_t* to, size_t distance, size_t count) {
  if (distance >= 16) copy_steps<16, 32>(to, to - distance, count);
  else if (distance >= 8) copy_steps<8, 24>(to, to - distance, count);
  else repeat_pattern(to, distance, count);
}

// The same without writing more, at `room` bytes from the end of the output.
void copy_match_near_end(uint8_t* to, size_t distance, size_t count, size_t room) {
  const size_t far = room > kSlack ? std::min(count, room - kSlack) : 0;
  if (far > 0) copy_match(to, distance, far);
  copy_exactly(to + far, distance, count - far);
}

// Decompress the rest of a block.
bool finish(Cursor c) {
  while (c.at != c.end) {
    const uint8_t token = *c.at++;
    size_t literals = token >> 4;
    if (!read_length(c.at, c.end, literals)) return false;
    if (literals > c.input() || literals > c.output()) return false;
    if (literals > 0) std::memcpy(c.to + c.have, c.at, literals);
    c.at += literals;
    c.have += literals;
    if (c.at == c.end) return c.have == c.bytes;
    if (c.input() < 2) return false;
    const size_t distance = c.at[0] | size_t{c.at[1]} << 8;
    c.at += 2;
    size_t match = token & kLongest;
    if (!read_length(c.at, c.end, match)) return false;
    match += kLeastMatch;
    if (distance == 0 || distance > c.have || match > c.output()) return false;
    copy_exactly(c.to + c.have, distance, match);
    c.have += match;
  }
  return false;
}

}  // namespace

// A block is a list of sequences: a token with two lengths, literal bytes, and a copy of earlier output. The last
// sequence has literal bytes only. Far from the ends, copies have fixed sizes, and may write more than they have to.
bool decompress_lz4(ByteSpan block, uint8_t* to, size_t bytes) {
  static_assert(std::endian::native == std::endian::little);
  if (block.size < kShortInput || bytes < kShortOutput) return decompress_lz4_plain(block, to, bytes);
  const uint8_t *at = block.data, *const end = at + block.size;
  uint8_t *here = to, *const last = to + bytes;
  const auto input = [&] { return static_cast<size_t>(end - at); };
  const auto output = [&] { return static_cast<size_t>(last - here); };
  const uint8_t *const far_in = end - kShortInput, *const far_out = last - kShortOutput;
  while (at <= far_in && here <= far_out) {
    const size_t token = *at++;
    size_t literals = token >> 4, match = token & kLongest;
    if (literals != kLongest) {
      copy_bytes<16>(here, at);
      at += literals;
      here += literals;
      if (match != kLongest) {
        const size_t distance = at[0] | size_t{at[1]} << 8;
        at += 2;
        if (distance - 1 >= static_cast<size_t>(here - to)) return false;  // also for a distance of 0
        if (distance >= 8) {
          const uint8_t* const from = here - distance;
          copy_bytes<8>(here, from);
          copy_bytes<8>(here + 8, from + 8);
          copy_bytes<2>(here + 16, from + 16);
        } else {
          repeat_pattern(here, distance, kLeastMatch + match);
        }
        here += kLeastMatch + match;
        continue;
      }
    } else {
      if (!read_length(at, end, literals)) return false;
      if (literals > input() || literals > output()) return false;
      if (literals <= 256 && input() - literals >= kSlack && output() - literals >= kSlack)
        copy_steps<16, 32>(here, at, literals);
      else std::memcpy(here, at, literals);
      at += literals;
      here += literals;
      if (at == end) return here == last;
      if (input() < 2) return false;
    }
    const size_t distance = at[0] | size_t{at[1]} << 8;
    at += 2;
    if (!read_length(at, end, match)) return false;
    match += kLeastMatch;
    if (distance - 1 >= static_cast<size_t>(here - to) || match > output()) return false;
    if (output() - match >= kSlack) copy_match(here, distance, match);
    else copy_match_near_end(here, distance, match, output());
    here += match;
  }
  return finish({at, end, to, static_cast<size_t>(here - to), bytes});
}

bool decompress_lz4_plain(ByteSpan block, uint8_t* to, size_t bytes) {
  return finish({block.data, block.data + block.size, to, 0, bytes});
}

}  // namespace stoker
