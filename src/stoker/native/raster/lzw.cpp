// SPDX-License-Identifier: Apache-2.0
#include "raster/lzw.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace stoker::raster {
namespace {

constexpr uint32_t kCodes = 4096;
constexpr int kMostBits = 12;

// Bits of the codes of TIFF files: the high bits of a byte come first.
struct HighFirst {
  static uint64_t load(const uint8_t* from) {
    uint64_t bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return __builtin_bswap64(bytes);
  }
  static uint64_t byte(uint8_t value) { return static_cast<uint64_t>(value) << 56; }
  static uint64_t after(uint64_t bits, int count) { return bits >> count; }
  static uint32_t first(uint64_t buffer, int bits) { return static_cast<uint32_t>(buffer >> (64 - bits)); }
  static uint64_t without(uint64_t buffer, int bits) { return buffer << bits; }
};

// Bits of the codes of GIF files: the low ones come first.
struct LowFirst {
  static uint64_t load(const uint8_t* from) {
    uint64_t bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return bytes;
  }
  static uint64_t byte(uint8_t value) { return value; }
  static uint64_t after(uint64_t bits, int count) { return bits << count; }
  static uint32_t first(uint64_t buffer, int bits) { return static_cast<uint32_t>(buffer & ((1u << bits) - 1)); }
  static uint64_t without(uint64_t buffer, int bits) { return buffer >> bits; }
};

// Codes of growing width.
template <class Order>
class Codes {
 public:
  Codes(const uint8_t* from, size_t size) : from_(from), end_(from + size) {}

  // Read a code. Return false where the data end.
  bool next(int bits, uint32_t& code) {
    if (count_ < kMostBits) fill();
    if (count_ < bits) return false;
    code = Order::first(buffer_, bits);
    buffer_ = Order::without(buffer_, bits);
    count_ -= bits;
    return true;
  }

 private:
  void fill() {
    if (end_ - from_ >= 8) {
      // Bits of a byte that is not counted yet are read again: they are the same.
      buffer_ |= Order::after(Order::load(from_), count_);
      from_ += (63 - count_) / 8;
      count_ |= 56;
      return;
    }
    // The last bytes of all may have been read in part, so they are read again.
    buffer_ &= kept();
    for (; count_ <= 56 && from_ < end_; count_ += 8) buffer_ |= Order::after(Order::byte(*from_++), count_);
  }
  // Mask of the bits that are counted.
  uint64_t kept() const { return count_ == 0 ? 0 : ~Order::after(~uint64_t{0}, count_); }

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

// Strings of codes from `clear` + 2. `early`: codes grow one code before the table needs it. A table that is full is an
// error, or stays as it is.
struct Rules {
  uint32_t clear;
  int least_bits;
  uint32_t early;
  bool may_be_full;
};

// Each string of the table is somewhere in the result already: it is an earlier string and the byte after it. So the
// table has positions and lengths, and no string is put together from its last byte to its first.
template <class Order>
size_t decode_strings(Codes<Order> codes, const Rules& rules, uint8_t* to, size_t wanted) {
  std::array<uint32_t, kCodes> lengths;
  std::array<size_t, kCodes> starts;
  const uint32_t clear = rules.clear, first = clear + 2;
  uint32_t free = first, before_length = 0, code;
  size_t before = 0, at = 0;
  int bits = rules.least_bits;
  while (at < wanted) {
    if (!codes.next(bits, code) || code == clear + 1) break;
    if (code == clear) {
      free = first;
      bits = rules.least_bits;
      before_length = 0;
      continue;
    }
    const size_t left = wanted - at;
    size_t start = at, length = 1;
    const bool grows = before_length > 0 && free < kCodes;
    if (grows) {
      starts[free] = before;
      lengths[free] = before_length + 1;
    } else if (before_length > 0 && !rules.may_be_full) {
      break;
    }
    if (code < clear) {
      to[at] = static_cast<uint8_t>(code);
    } else {
      if (before_length == 0 || code > free) break;
      start = starts[code];
      length = std::min<size_t>(lengths[code], left);
      copy_string(to + at, at - start, length);
    }
    if (grows && ++free >= (1u << bits) - rules.early && bits < kMostBits) ++bits;
    before = at;
    before_length = static_cast<uint32_t>(length);
    at += length;
  }
  return at;
}

}  // namespace

size_t decode_lzw(const uint8_t* from, size_t size, uint8_t* to, size_t wanted) {
  return decode_strings(Codes<HighFirst>(from, size), {256, 9, 1, false}, to, wanted);
}

size_t decode_gif_lzw(const uint8_t* from, size_t size, int bits, uint8_t* to, size_t wanted) {
  return decode_strings(Codes<LowFirst>(from, size), {1u << bits, bits + 1, 0, true}, to, wanted);
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
