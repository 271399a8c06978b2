// SPDX-License-Identifier: Apache-2.0
// Tables decode two literals by one entry where both codes fit. Matches are copied in wide words that may reach beyond their
// end, into memory that later bytes overwrite.
#include "raster/inflate.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "raster/checksums.hpp"

namespace stoker::raster {
namespace {

constexpr int kMaxBits = 15, kLiterals = 288, kDistances = 32, kPrecodes = 19;
constexpr int kLiteralBits = 11, kDistanceBits = 8, kPrecodeBits = 7;

// Entry of a table. Bits 0 to 4: bits to consume. Bits 8 to 11: bits of the code alone. The other bits by kind:
//   literals: kLiteral, kTwo if there are two; bits 12 to 19 and 20 to 27: their values
//   length or distance: bits 12 to 26: base; the extra bits follow the code
//   link to a subtable: kSpecial, kLink; bits 12 to 26: its position, bits 8 to 11: its bits
//   end of the block: kSpecial, kEnd
//   no code: kSpecial alone
using Entry = uint32_t;
constexpr Entry kLiteral = 1u << 31, kSpecial = 1u << 30, kLink = 1u << 29, kEnd = 1u << 28, kTwo = 1u << 28;
constexpr int kBitsMask = 31, kCodeShift = 8, kValueShift = 12, kSecondShift = 20;
constexpr uint32_t kValueMask = 0x7FFF;

// A code of 15 bits has at most 2^(15 - root) subtable entries for each of the root's entries that it needs; these
// numbers bound complete codes of 288 and 32 symbols.
constexpr size_t kLiteralEntries = (1 << kLiteralBits) + 2048, kDistanceEntries = (1 << kDistanceBits) + 1024;

constexpr uint16_t kLengthBase[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr uint8_t kLengthExtra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                      2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr uint16_t kDistanceBase[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                        33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                        1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr uint8_t kDistanceExtra[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                        6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

enum class Alphabet : uint8_t { Precode, Literal, Distance };

// Return the entry of a symbol, without its code's length.
Entry entry_of(Alphabet alphabet, int symbol) {
  const auto value = [](uint32_t v) { return v << kValueShift; };
  switch (alphabet) {
    case Alphabet::Precode: return value(static_cast<uint32_t>(symbol));
    case Alphabet::Literal:
      if (symbol < 256) return kLiteral | value(static_cast<uint32_t>(symbol));
      if (symbol == 256) return kSpecial | kEnd;
      return symbol - 257 < 29 ? value(kLengthBase[symbol - 257]) | kLengthExtra[symbol - 257] : kSpecial;
    default: return symbol < 30 ? value(kDistanceBase[symbol]) | kDistanceExtra[symbol] : kSpecial;
  }
}

uint32_t reversed(uint32_t code, int bits) {
  uint32_t to = 0;
  for (int i = 0; i < bits; ++i) to |= (code >> i & 1) << (bits - 1 - i);
  return to;
}

template <size_t Size, int Root>
struct Table {
  Entry of[Size];

  // Build the table of a canonical code. Return whether the lengths are those of a code that zlib accepts: complete,
  // or, where `single` allows it, of one symbol with one bit, or of none.
  bool build(Alphabet alphabet, const uint8_t* lengths, int symbols, bool single) {
    uint32_t count[kMaxBits + 1] = {}, next[kMaxBits + 1] = {};
    for (int i = 0; i < symbols; ++i) ++count[lengths[i]];
    count[0] = 0;
    int32_t left = 1;
    int longest = 0;
    for (int bits = 1; bits <= kMaxBits; ++bits) {
      left = 2 * left - static_cast<int32_t>(count[bits]);
      if (left < 0) return false;
      next[bits] = (next[bits - 1] + count[bits - 1]) << 1;
      if (count[bits] > 0) longest = bits;
    }
    if (left > 0) {
      if (!single || longest > 1) return false;
      std::fill_n(of, size_t{1} << Root, kSpecial | 1);
    }
    uint16_t order[kLiterals], first[kMaxBits + 2] = {};
    for (int bits = 1; bits <= kMaxBits; ++bits) first[bits + 1] = static_cast<uint16_t>(first[bits] + count[bits]);
    for (int i = 0; i < symbols; ++i)
      if (lengths[i] > 0) order[first[lengths[i]]++] = static_cast<uint16_t>(i);
    const int used = first[kMaxBits];
    size_t end = size_t{1} << Root;  // of the subtables
    uint32_t prefix = ~0u;
    size_t base = 0;
    int sub = 0;
    for (int k = 0; k < used; ++k) {
      const int symbol = order[k], bits = lengths[symbol];
      const uint32_t code = reversed(next[bits]++, bits);
      Entry e = entry_of(alphabet, symbol);
      if (bits <= Root) {
        e = (e + static_cast<Entry>(bits)) | static_cast<Entry>(bits) << kCodeShift;
        for (size_t at = code; at < size_t{1} << Root; at += size_t{1} << bits) of[at] = e;
        continue;
      }
      if ((code & ((1u << Root) - 1)) != prefix) {
        prefix = code & ((1u << Root) - 1);
        base = end;
        // The subtable is as deep as it must be to hold the next codes: those of the same prefix come first.
        sub = bits - Root;
        uint32_t taken = 0;
        for (int next_k = k; next_k < used && lengths[order[next_k]] == bits; ++next_k) ++taken;
        while (taken < 1u << sub && sub < kMaxBits - Root) {
          ++sub;
          taken = 2 * taken + count[Root + sub];
        }
        end += size_t{1} << sub;
        if (end > Size) return false;
        of[prefix] =
            kSpecial | kLink | static_cast<Entry>(base) << kValueShift | static_cast<Entry>(sub) << kCodeShift | Root;
      }
      const int rest = bits - Root;
      e = (e + static_cast<Entry>(rest)) | static_cast<Entry>(rest) << kCodeShift;
      for (size_t at = code >> Root; at < size_t{1} << sub; at += size_t{1} << rest) of[base + at] = e;
    }
    return true;
  }

  // Join literals whose codes fit into the root together. Higher positions read lower ones, so these come last.
  void pair_literals() {
    for (size_t at = size_t{1} << Root; at-- > 0;) {
      const Entry one = of[at];
      if ((one & kLiteral) == 0) continue;
      const int bits = static_cast<int>(one & kBitsMask);
      const Entry two = of[at >> bits];
      const int all = bits + static_cast<int>(two & kBitsMask);
      if ((two & kLiteral) == 0 || all > Root) continue;
      of[at] = kLiteral | kTwo | (two >> kValueShift & 255) << kSecondShift | (one & 255u << kValueShift) |
               static_cast<Entry>(all);
    }
  }
};

struct Tables {
  Table<kLiteralEntries, kLiteralBits> literals;
  Table<kDistanceEntries, kDistanceBits> distances;
};

// Bits of the input, lowest first. After `refill` there are at least 56; zeros follow the data.
struct Bits {
  const uint8_t* at;
  const uint8_t* end;
  uint64_t word = 0;
  uint32_t count = 0;

  // Call it at most twice between two calls of `overrun`.
  void refill() {
    uint64_t next;
    std::memcpy(&next, at, sizeof next);
    word |= next << count;
    at += (63 - count) >> 3;
    count |= 56;
  }
  // Return whether more bits were consumed than there are.
  bool overrun() const { return at > end && (at - end) * 8 > static_cast<ptrdiff_t>(count); }
  uint32_t peek(int bits) const { return static_cast<uint32_t>(word) & ((1u << bits) - 1); }
  void drop(uint32_t bits) {
    word >>= bits;
    count -= bits;
  }
  uint32_t take(int bits) {
    const uint32_t value = peek(bits);
    drop(static_cast<uint32_t>(bits));
    return value;
  }
};

struct Reader {
  Bits bits;
  uint8_t* const begin;
  uint8_t* out;
  uint8_t* const end;  // of the wanted bytes
};

// Copy `length` bytes from `distance` bytes before; may write up to 32 bytes more.
inline uint8_t* copy_match(uint8_t* out, size_t distance, size_t length) {
  uint8_t* const end = out + length;
  const uint8_t* from = out - distance;
  if (distance >= 16) {
    do {
      std::memcpy(out, from, 16);
      std::memcpy(out + 16, from + 16, 16);
      out += 32;
      from += 32;
    } while (out < end);
    return end;
  }
  if (distance >= 8) {
    for (; out < end; out += 8, from += 8) std::memcpy(out, from, 8);
    return end;
  }
  // The result has the period `distance`: after its first eight bytes it is stored word by word.
  constexpr uint8_t kStep[8] = {0, 8, 8, 6, 8, 5, 6, 7};
  for (int i = 0; i < 8; ++i) out[i] = from[i];
  uint64_t pattern;
  std::memcpy(&pattern, out, sizeof pattern);
  for (; out < end; out += kStep[distance]) std::memcpy(out, &pattern, sizeof pattern);
  return end;
}

InflateResult damaged(const char* reason) { return {Inflated::Damaged, 0, reason}; }
constexpr InflateResult kGoOn{Inflated::Ok, 0, nullptr};

// Decode the symbols of a block.
InflateResult read_symbols(Reader& r, const Tables& tables) {
  Bits bits = r.bits;
  uint8_t* out = r.out;
  constexpr uint64_t kRoot = (1 << kLiteralBits) - 1, kDistanceRoot = (1 << kDistanceBits) - 1;
  const Entry* const literals = tables.literals.of;
  const Entry* const distances = tables.distances.of;
  const auto finish = [&](InflateResult result) {
    r.bits = bits;
    r.out = out;
    return result;
  };
  for (;;) {
    if (out > r.end) return finish({Inflated::Full, 0, nullptr});
    if (bits.overrun()) return finish({Inflated::Truncated, 0, nullptr});
    bits.refill();
    Entry e = literals[bits.word & kRoot];
    // Four entries take at most 44 bits, so that the fifth is looked up with eleven at least.
    for (int i = 0; i < 4 && (e & kLiteral) != 0; ++i) {
      out[0] = static_cast<uint8_t>(e >> kValueShift);
      out[1] = static_cast<uint8_t>(e >> kSecondShift);
      out += 1 + (e >> 28 & 1);
      bits.drop(e & kBitsMask);
      e = literals[bits.word & kRoot];
    }
    if ((e & kLiteral) != 0) continue;
    bits.refill();
    if ((e & kSpecial) != 0) {
      if ((e & kLink) != 0) {
        bits.drop(kLiteralBits);
        e = literals[(e >> kValueShift & kValueMask) + bits.peek(static_cast<int>(e >> kCodeShift & 15))];
        if ((e & kLiteral) != 0) {
          *out++ = static_cast<uint8_t>(e >> kValueShift);
          bits.drop(e & kBitsMask);
          continue;
        }
      }
      if ((e & kSpecial) != 0) {
        if ((e & kEnd) == 0) return finish(damaged("an invalid code of a literal or length"));
        bits.drop(e & kBitsMask);
        return finish(bits.overrun() ? InflateResult{Inflated::Truncated, 0, nullptr} : kGoOn);
      }
    }
    const auto with_extra = [&](Entry of) {
      const uint32_t all = of & kBitsMask, code = of >> kCodeShift & 15;
      const uint32_t extra = static_cast<uint32_t>(bits.word >> code) & ((1u << (all - code)) - 1);
      bits.drop(all);
      return (of >> kValueShift & kValueMask) + extra;
    };
    const size_t length = with_extra(e);
    Entry d = distances[bits.word & kDistanceRoot];
    if ((d & kSpecial) != 0) {
      if ((d & kLink) != 0) {
        bits.drop(kDistanceBits);
        d = distances[(d >> kValueShift & kValueMask) + bits.peek(static_cast<int>(d >> kCodeShift & 15))];
      }
      if ((d & kSpecial) != 0) return finish(damaged("an invalid code of a distance"));
    }
    const size_t distance = with_extra(d);
    if (distance > static_cast<size_t>(out - r.begin)) return finish(damaged("a distance beyond the first byte"));
    out = copy_match(out, distance, length);
  }
}

InflateResult read_stored(Reader& r) {
  Bits& bits = r.bits;
  bits.drop(bits.count & 7);
  const uint8_t* from = bits.at - bits.count / 8;
  if (from + 4 > bits.end) return {Inflated::Truncated, 0, nullptr};
  const size_t length = static_cast<size_t>(from[0] | from[1] << 8);
  if ((from[2] | from[3] << 8) != static_cast<int>(length ^ 0xFFFF))
    return damaged("a stored block with a wrong length");
  from += 4;
  const size_t there = static_cast<size_t>(bits.end - from),
               room = static_cast<size_t>(std::max<ptrdiff_t>(r.end - r.out, 0));
  const size_t copied = std::min(std::min(length, there), room);
  if (copied > 0) std::memcpy(r.out, from, copied);
  r.out += copied;
  if (there < length) return {Inflated::Truncated, 0, nullptr};
  if (room < length) return {Inflated::Full, 0, nullptr};
  bits = {from + length, bits.end};
  return kGoOn;
}

InflateResult read_fixed(Reader& r) {
  static const Tables tables = [] {
    Tables made;
    uint8_t lengths[kLiterals];
    std::fill_n(lengths, 144, uint8_t{8});
    std::fill_n(lengths + 144, 112, uint8_t{9});
    std::fill_n(lengths + 256, 24, uint8_t{7});
    std::fill_n(lengths + 280, 8, uint8_t{8});
    made.literals.build(Alphabet::Literal, lengths, kLiterals, false);
    made.literals.pair_literals();
    std::fill_n(lengths, kDistances, uint8_t{5});
    made.distances.build(Alphabet::Distance, lengths, kDistances, false);
    return made;
  }();
  return read_symbols(r, tables);
}

// Read the lengths of a dynamic block's codes.
InflateResult read_lengths(Bits& bits, uint8_t* lengths, int count) {
  constexpr uint8_t kOrder[kPrecodes] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  uint8_t of[kPrecodes] = {};
  const int codes = 4 + static_cast<int>(bits.take(4));
  for (int i = 0; i < codes; ++i) {
    if (i % 16 == 0) bits.refill();
    of[kOrder[i]] = static_cast<uint8_t>(bits.take(3));
  }
  Table<1 << kPrecodeBits, kPrecodeBits> table;
  if (!table.build(Alphabet::Precode, of, kPrecodes, false)) return damaged("an invalid set of code lengths");
  for (int i = 0; i < count;) {
    if (bits.overrun()) return {Inflated::Truncated, 0, nullptr};
    bits.refill();
    const Entry e = table.of[bits.peek(kPrecodeBits)];
    bits.drop(e & kBitsMask);
    const int symbol = static_cast<int>(e >> kValueShift);
    if (symbol < 16) {
      lengths[i++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && i == 0) return damaged("a repeated length without one before");
    const uint8_t value = symbol == 16 ? lengths[i - 1] : uint8_t{0};
    const int times = symbol == 16   ? 3 + static_cast<int>(bits.take(2))
                      : symbol == 17 ? 3 + static_cast<int>(bits.take(3))
                                     : 11 + static_cast<int>(bits.take(7));
    if (times > count - i) return damaged("more repeated lengths than codes");
    std::fill_n(lengths + i, times, value);
    i += times;
  }
  return kGoOn;
}

InflateResult read_dynamic(Reader& r, Tables& tables) {
  Bits& bits = r.bits;
  const int literals = 257 + static_cast<int>(bits.take(5)), distances = 1 + static_cast<int>(bits.take(5));
  if (literals > 286 || distances > 30) return damaged("too many codes of lengths or distances");
  uint8_t lengths[286 + 30] = {};
  const InflateResult read = read_lengths(bits, lengths, literals + distances);
  if (read.status != Inflated::Ok) return read;
  if (lengths[256] == 0) return damaged("no code for the end of a block");
  if (!tables.literals.build(Alphabet::Literal, lengths, literals, true))
    return damaged("an invalid set of literal codes");
  if (!tables.distances.build(Alphabet::Distance, lengths + literals, distances, true))
    return damaged("an invalid set of distance codes");
  tables.literals.pair_literals();
  return read_symbols(r, tables);
}

}  // namespace

InflateResult inflate_zlib(const uint8_t* from, size_t size, uint8_t* to, size_t wanted) {
  if (size < 2) return {Inflated::Truncated, 0, nullptr};
  if ((from[0] << 8 | from[1]) % 31 != 0 || (from[0] & 15) != 8 || from[0] >> 4 > 7 || (from[1] & 32) != 0)
    return damaged("a wrong header of the compressed data");
  Reader r{{from + 2, from + size}, to, to, to + wanted};
  Tables tables;
  InflateResult result = kGoOn;
  for (bool last = false; !last && result.status == Inflated::Ok;) {
    if (r.bits.overrun()) {
      result = {Inflated::Truncated, 0, nullptr};
      break;
    }
    r.bits.refill();
    last = r.bits.take(1) != 0;
    switch (r.bits.take(2)) {
      case 0: result = read_stored(r); break;
      case 1: result = read_fixed(r); break;
      case 2: result = read_dynamic(r, tables); break;
      default: result = damaged("an invalid kind of block");
    }
  }
  result.bytes = std::min(static_cast<size_t>(r.out - to), wanted);
  if (result.status != Inflated::Ok) return result;
  if (r.out > r.end) {
    result.status = Inflated::Full;
    return result;
  }
  r.bits.drop(r.bits.count & 7);
  const uint8_t* const sum = r.bits.at - r.bits.count / 8;
  if (r.bits.overrun() || sum + 4 > r.bits.end) {
    result.status = Inflated::Truncated;
    return result;
  }
  const uint32_t stored = static_cast<uint32_t>(sum[0]) << 24 | static_cast<uint32_t>(sum[1]) << 16 |
                          static_cast<uint32_t>(sum[2]) << 8 | sum[3];
  if (adler32(to, result.bytes) != stored)
    return {Inflated::Damaged, result.bytes, "a wrong checksum of the decompressed data"};
  return result;
}

}  // namespace stoker::raster
