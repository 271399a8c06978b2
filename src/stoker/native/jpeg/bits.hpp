// SPDX-License-Identifier: Apache-2.0
// Shared parts of all entropy decoders: canonical codes, the bit buffer, and the order of coefficients.
#pragma once
#include <bit>
#include <cstring>

#include "jpeg/damage.hpp"
#include "jpeg/huffman.hpp"
#include "shared/jpeg_order.cuh"

namespace stoker::jpeg {

// Natural position of each zig-zag position. Positions past 63, which only damaged data and the unused halves of pairs
// reach, map to coefficient 63 as in libjpeg. A step is at most kUnresolved + 16, which determines the size.
struct NaturalOrder {
  uint8_t at[64 + kUnresolved + 32];
  constexpr NaturalOrder() : at() {
    constexpr ZigZag order;
    for (int i = 0; i < 64; ++i) at[i] = static_cast<uint8_t>(8 * order.row[i] + order.column[i]);
    for (size_t i = 64; i < sizeof at; ++i) at[i] = 63;
  }
};
inline constexpr NaturalOrder kNatural;

inline uint64_t load_be64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return std::endian::native == std::endian::little ? __builtin_bswap64(v) : v;
}

// Fill `code` and call leaf(first 16-bit prefix, code length, symbol) for every code of up to `lookup` bits.
template <typename Leaf>
bool canonical(const uint8_t* dht, int lookup, Code& code, Leaf&& leaf) {
  uint32_t next = 0;
  int index = 0;
  std::memset(code.symbol, 0, sizeof code.symbol);
  code.limit[0] = 0;
  for (int length = 1; length <= 16; ++length) {
    const int count = dht[length - 1];
    code.value_offset[length] = index - static_cast<int32_t>(next);
    for (int i = 0; i < count; ++i, ++index, ++next) {
      code.symbol[index] = dht[16 + index];
      if (next >= (1u << length)) return false;
      if (length <= lookup) leaf(next << (16 - length), length, dht[16 + index]);
    }
    // A code of all ones is refused as in libjpeg, which does not check lengths without codes either.
    if (count && next >= (1u << length)) return false;
    code.limit[length] = next << (16 - length);
    next <<= 1;
  }
  return true;
}

// Convert `size` bits in JPEG's sign convention to a value.
constexpr int extend(int bits, int size) { return size && bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits; }

[[gnu::always_inline]] inline void refill(uint64_t& buffer, int64_t& count, const uint8_t*& next) {
  // Refill without branches; afterwards 56..63 bits are valid. `next` does not depend on the bits used since the last
  // refill, so the load can start early.
  buffer |= load_be64(next) >> count;
  next += (63 - count) >> 3;
  count |= 56;
}

struct Symbol {
  int length, value;
};

// `top` has `size` value bits at its top; size 0 gives 0.
[[gnu::always_inline]] inline int32_t signed_bits(uint64_t top, int size) {
  const int32_t bits = static_cast<int32_t>(top >> 1 >> (63 - size));
  const int32_t negative = static_cast<int32_t>(~(static_cast<int64_t>(top) >> 63));
  return bits - (negative & ((1 << size) - 1));
}

struct Cursor {
  uint64_t buffer;
  int64_t count;
  const uint8_t* next;

  [[gnu::always_inline]] const uint8_t* byte() const { return next - (count >> 3); }  // the byte of the next bit
  [[gnu::always_inline]] void take(int bits) {
    buffer <<= bits;
    count -= bits;
  }
};

// Find a code that is longer than the lookup. Invalid codes take 17 bits and mean symbol 0, as in libjpeg. `at` is the
// byte in which the code begins.
[[gnu::noinline]] inline Symbol search(const Code& code, uint64_t buffer, int shortest, const uint8_t* at) {
  const uint32_t prefix = static_cast<uint32_t>(buffer >> 48);
  for (int length = shortest; length <= 16; ++length) {
    if (prefix < code.limit[length])
      return {length, code.symbol[(static_cast<int32_t>(prefix >> (16 - length)) + code.value_offset[length]) & 255]};
  }
  if (code.damage) {
    ++code.damage->wrong_codes;
    if (!code.damage->unplaced) code.damage->unplaced = at;
  }
  return {17, 0};
}

[[gnu::always_inline]] inline int32_t decode_dc(Cursor& c, const DcTable& table) {
  uint32_t entry = table.entry[c.buffer >> (64 - kDcBits)];
  if (__builtin_expect((entry & 255) == 0, 0)) {
    const Symbol s = search(table.code, c.buffer, kDcBits + 1, c.byte());
    entry = static_cast<uint32_t>(s.length + s.value) | static_cast<uint32_t>(s.length) << 8 |
            static_cast<uint32_t>(s.value) << 16;
  }
  const int32_t difference = signed_bits(c.buffer << (entry >> 8 & 255), static_cast<int>(entry >> 16));
  c.take(static_cast<int>(entry & 255));
  return difference;
}

}  // namespace stoker::jpeg
