// SPDX-License-Identifier: Apache-2.0
// Decoding of Huffman symbols with tables in shared memory: one lookup for a short symbol or for two symbols together,
// and the canonical code for long ones.
#pragma once
#include "device/block_scan.cuh"
#include "shared/jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kLookupBits = 10;
constexpr uint32_t kLookupSize = 1u << kLookupBits;
constexpr uint32_t kTables = 2 * kMaxPlanes;  // DC and AC of each pair
// Codes that are longer than the lookup have the greatest prefixes. The first ones of 16 bits have a table of their own;
// in photographs, these are nearly all.
constexpr uint32_t kLongSize = 384;

// Canonical code, for symbols that the lookup does not resolve.
struct HuffmanCode {
  uint32_t limit[17];  // limit[l]: first 16-bit prefix that is not a code of l or fewer bits
  int32_t offset[17];
  uint8_t symbol[256];
};

// Lookup result. First: total length of the symbol's code and value (0 if the code is longer than the lookup), the
// number of zig-zag positions that it advances by, and the length of its code. Then the length and positions of this
// symbol and the next one together, if the next one uses the same table and its code is within the lookup, or else of
// this symbol alone. The second part serves code that skips values.
using Entry = uint32_t;
STOKER_DEVICE uint32_t whole_length(Entry e) { return e & 31; }
STOKER_DEVICE uint32_t advance(Entry e) { return e >> 5 & 127; }
STOKER_DEVICE uint32_t code_length(Entry e) { return e >> 12 & 31; }
STOKER_DEVICE uint32_t value_length(Entry e) { return whole_length(e) - code_length(e); }
STOKER_DEVICE uint32_t stride_length(Entry e) { return e >> 17 & 31; }
STOKER_DEVICE uint32_t stride_advance(Entry e) { return e >> 22; }

STOKER_DEVICE Entry entry_of(uint32_t symbol, uint32_t length, bool dc) {
  const uint32_t size = symbol & 15;
  const uint32_t step = dc ? 1 : size ? (symbol >> 4) + 1 : symbol == 0xF0 ? 16 : 64;
  return (length + size) * (1 | 1 << 17) | step * (1 << 5 | 1 << 22) | length << 12;
}
STOKER_DEVICE Entry with_next(Entry e, Entry next) { return e + (whole_length(next) << 17) + (advance(next) << 22); }

struct alignas(16) Tables {
  Entry lookup[kTables * kLookupSize];
  Entry longer[kTables * kLongSize];  // by the prefix of 16 bits, from the lookup's end on
  HuffmanCode code[kTables];
};
static_assert(sizeof(Tables) == kTablesBytes);

struct EntropyShared {
  Tables tables;
  uint32_t sums[kMaxWarps];
  uint32_t dirty;
  uint32_t failed;
  uint32_t next;                     // the next share of this block (CTA) of a known file
  uint16_t list[kWarp * kMaxWarps];  // the pieces that it decodes in the current share
};

STOKER_DEVICE bool is_dc(uint32_t table) { return table % 2 == 0; }

STOKER_DEVICE uint32_t table_offset(const Row& row, uint32_t table) {
  return is_dc(table) ? row.dc[table / 2] : row.ac[table / 2];
}

STOKER_DEVICE uint8_t file_byte(const Row& row, uint32_t at) {
  return at < row.file_bytes ? pointer<const uint8_t>(row.file)[at] : 0;
}

STOKER_DEVICE void read_code(const Row& row, uint32_t at, HuffmanCode& code) {
  uint32_t next = 0, index = 0;
  code.limit[0] = 0;
  code.offset[0] = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    const uint32_t count = file_byte(row, at + length - 1);
    code.offset[length] = static_cast<int32_t>(index) - static_cast<int32_t>(next);
    next += count;
    index += count;
    code.limit[length] = next << (16 - length);
    next <<= 1;
  }
}

STOKER_DEVICE Entry short_entry(const HuffmanCode& code, uint32_t index, bool dc) {
  const uint32_t prefix = index << (16 - kLookupBits);
  for (uint32_t length = 1; length <= kLookupBits; ++length)
    if (prefix < code.limit[length])
      return entry_of(code.symbol[((prefix >> (16 - length)) + static_cast<uint32_t>(code.offset[length])) & 255],
                      length, dc);
  return 0;
}

// Extend the entry by the next symbol.
STOKER_DEVICE Entry two_symbols(const HuffmanCode& code, uint32_t index, bool dc) {
  const Entry first = short_entry(code, index, dc);
  const uint32_t bits = whole_length(first);
  if (dc || first == 0 || advance(first) >= 64 || bits >= kLookupBits)
    return first;  // the symbol after a block's end uses another table
  const Entry second = short_entry(code, index << bits & (kLookupSize - 1), dc);
  return second != 0 && bits + code_length(second) <= kLookupBits ? with_next(first, second) : first;
}

// Decode a long code. Invalid codes take 17 bits and mean symbol 0, as in libjpeg.
STOKER_DEVICE Entry long_entry(const HuffmanCode& code, uint32_t top, bool dc) {
  const uint32_t prefix = top >> 16;
  for (uint32_t length = kLookupBits + 1; length <= 16; ++length)
    if (prefix < code.limit[length])
      return entry_of(code.symbol[((prefix >> (16 - length)) + static_cast<uint32_t>(code.offset[length])) & 255],
                      length, dc);
  return entry_of(0, 17, dc);
}

STOKER_DEVICE void build_tables(const Row& row, Tables& tables) {
  const uint32_t thread = thread_index(), threads = thread_count();
  for (uint32_t i = thread; i < kTables * 256; i += threads) {
    const uint32_t at = table_offset(row, i / 256);
    if (at) tables.code[i / 256].symbol[i % 256] = file_byte(row, at + 16 + i % 256);
  }
  if (thread < kTables && table_offset(row, thread)) read_code(row, table_offset(row, thread), tables.code[thread]);
  block_barrier();
  for (uint32_t i = thread; i < kTables * kLookupSize; i += threads) {
    const uint32_t table = i / kLookupSize;
    if (table_offset(row, table)) tables.lookup[i] = two_symbols(tables.code[table], i % kLookupSize, is_dc(table));
  }
  for (uint32_t i = thread; i < kTables * kLongSize; i += threads) {
    const uint32_t table = i / kLongSize;
    const HuffmanCode& code = tables.code[table];
    if (table_offset(row, table))
      tables.longer[i] = long_entry(code, (code.limit[kLookupBits] + i % kLongSize) << 16, is_dc(table));
  }
}

// Copy tables between memory and shared memory.
STOKER_DEVICE void copy_tables(const Tables& from, Tables& to) {
  struct alignas(16) Part {
    uint32_t word[4];
  };
  static_assert(sizeof(Tables) % sizeof(Part) == 0);
  const Part* const source = reinterpret_cast<const Part*>(&from);
  Part* const target = reinterpret_cast<Part*>(&to);
  constexpr uint32_t kParts = sizeof(Tables) / sizeof(Part), kTogether = 4;
  for (uint32_t base = thread_index(); base < kParts; base += kTogether * thread_count()) {
    Part part[kTogether];  // their loads wait for memory together
    STOKER_UNROLL for (uint32_t k = 0; k < kTogether; ++k) {
      const uint32_t i = base + k * thread_count();
      part[k] = source[i < kParts ? i : kParts - 1];
    }
    STOKER_UNROLL for (uint32_t k = 0; k < kTogether; ++k) {
      const uint32_t i = base + k * thread_count();
      if (i < kParts) target[i] = part[k];
    }
  }
}

// Return the next symbol, from the lookup table that begins at `table`.
STOKER_DEVICE Entry next_symbol(const Tables& tables, uint32_t table, uint32_t top) {
  const Entry e = tables.lookup[table | top >> (32 - kLookupBits)];
  if (e != 0) return e;
  const uint32_t number = table / kLookupSize, beyond = (top >> 16) - tables.code[number].limit[kLookupBits];
  if (beyond < kLongSize) return tables.longer[number * kLongSize + beyond];
  return long_entry(tables.code[number], top, is_dc(number));
}

}  // namespace stoker::jpeg::gpu
