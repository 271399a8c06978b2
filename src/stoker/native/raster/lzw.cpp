// SPDX-License-Identifier: Apache-2.0
#include "raster/lzw.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace stoker::raster {
namespace {

constexpr uint32_t kClear = 256, kEnd = 257, kFirst = 258, kCodes = 4096;
constexpr int kLeastBits = 9, kMostBits = 12;

// Codes of growing width, whose high bits come first.
class Codes {
 public:
  Codes(const uint8_t* from, size_t size) : from_(from), end_(from + size) {}

  // Read a code. Return kEnd where the data end.
  uint32_t next(int bits) {
    while (count_ <= 56 && from_ < end_) {
      buffer_ |= static_cast<uint64_t>(*from_++) << (56 - count_);
      count_ += 8;
    }
    if (count_ < bits) return kEnd;
    const auto code = static_cast<uint32_t>(buffer_ >> (64 - bits));
    buffer_ <<= bits;
    count_ -= bits;
    return code;
  }

 private:
  const uint8_t* from_;
  const uint8_t* const end_;
  uint64_t buffer_ = 0;
  int count_ = 0;
};

// Copy a string that begins before `to`. Strings that reach up to it repeat, so the order of the bytes matters there.
void copy_string(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* const from = to - distance;
  if (length <= kLzwOutputPadding) {
    if (distance >= length) {  // most strings: one load and one store, whose last bytes are overwritten later
      std::array<uint8_t, kLzwOutputPadding> bytes;
      std::memcpy(bytes.data(), from, bytes.size());
      std::memcpy(to, bytes.data(), bytes.size());
      return;
    }
  } else if (distance >= length) {
    std::memcpy(to, from, length);
    return;
  }
  for (size_t i = 0; i < length; ++i) to[i] = from[i];
}

}  // namespace

// Each string of the table is somewhere in the result already: it is an earlier string and the byte after it. So the
// table has positions and lengths, and no string is put together from its last byte to its first.
size_t decode_lzw(const uint8_t* from, size_t size, uint8_t* to, size_t wanted) {
  std::array<uint32_t, kCodes> lengths;
  std::array<size_t, kCodes> starts;
  Codes codes(from, size);
  uint32_t free = kFirst, before_length = 0;
  size_t before = 0, at = 0;
  int bits = kLeastBits;
  while (at < wanted) {
    const uint32_t code = codes.next(bits);
    if (code == kEnd) break;
    if (code == kClear) {
      free = kFirst;
      bits = kLeastBits;
      before_length = 0;
      continue;
    }
    const size_t left = wanted - at;
    size_t start = at, length = 1;
    if (before_length > 0) {
      if (free == kCodes) break;
      starts[free] = before;
      lengths[free] = before_length + 1;
    }
    if (code < kClear) {
      to[at] = static_cast<uint8_t>(code);
    } else {
      if (before_length == 0 || code > free) break;
      start = starts[code];
      length = std::min<size_t>(lengths[code], left);
      copy_string(to + at, at - start, length);
    }
    if (before_length > 0 && ++free >= (1u << bits) - 1 && bits < kMostBits) ++bits;
    before = at;
    before_length = static_cast<uint32_t>(length);
    at += length;
  }
  return at;
}

size_t decode_pack_bits(const uint8_t* from, size_t size, uint8_t* to, size_t wanted) {
  const uint8_t* const end = from + size;
  size_t at = 0;
  while (at < wanted && from < end) {
    const int count = static_cast<int8_t>(*from++);
    if (count == -128) continue;
    const auto length = std::min<size_t>(static_cast<size_t>(count >= 0 ? count : -count) + 1, wanted - at);
    if (count >= 0) {
      const auto there = std::min<size_t>(length, static_cast<size_t>(end - from));
      std::memcpy(to + at, from, there);
      from += there;
      at += there;
      if (there < length) break;
    } else {
      if (from == end) break;
      std::memset(to + at, *from++, length);
      at += length;
    }
  }
  return at;
}

}  // namespace stoker::raster
