// SPDX-License-Identifier: Apache-2.0
// Huffman tables, the bit buffer and the MCU loop of the sequential decoder.
#pragma once
#include <cstddef>
#include <cstdint>

#include "jpeg.hpp"

namespace stoker::jpeg {

// Bits that one table lookup sees: more find more symbols and miss the first-level cache more often.
constexpr int kAcBits = 12;
constexpr int kDcBits = 9;

// Canonical code, for what the lookup tables leave over.
struct Code {
  Damage* damage = nullptr;  // where wrong codes are told; null: nobody asked
  uint32_t limit[17];  // limit[l]: first 16-bit prefix that is no code of l or fewer bits
  int32_t value_offset[17];
  uint8_t symbol[256];
};

// Entry: bits 0-7 total length (code and value; 0: code longer than kDcBits), 8-15 code length, 16-23 value size.
struct DcTable {
  Code code;
  uint32_t entry[1 << kDcBits];
};

// One lookup decodes up to two symbols, and writes two without asking whether there are two: an absent second symbol
// repeats the first. Split in what the next lookup waits for, small enough to stay in the first-level cache, and what
// only the writes need. A step is run + 1 zig-zag positions, kEndOfBlock for EOB.
struct AcTable {
  Code code;
  // Low 6 bits: length of both symbols; above: their steps, kUnresolved (with length 0) when not even the first was
  // seen whole.
  uint16_t advance[1 << kAcBits];
  // Low to high: step of the first (8 bits), value of the first (12), of the second (12; unresolved: the symbol).
  uint32_t values[1 << kAcBits];
  // Rarely read. Length of the first symbol; unresolved: of its code alone, 0 if that is too long as well.
  uint8_t first_length[1 << kAcBits];
};
constexpr int kEndOfBlock = 64;
constexpr int kUnresolved = 128;

// Both take the 16 counts and the symbols of a DHT segment (validated by `parse`) and fail on an impossible code.
bool build_dc(const uint8_t* dht, DcTable& table, Damage* damage = nullptr);
// `pairs` costs some microseconds and pays off from a few kilobytes of data on.
bool build_ac(const uint8_t* dht, bool pairs, AcTable& table, Damage* damage = nullptr);

int natural_position(int zigzag);  // 0..63: row * 8 + column

// Tables of the standard's annex K, which libjpeg supplies to files without any (motion JPEG frames). Null: no default.
const uint8_t* standard_dc(int index);
const uint8_t* standard_ac(int index);

// Readable zero bytes that must follow unstuffed data: a damaged block can run 64 symbols of 31 bits past the end
// before the overrun is noticed, and the bit buffer reads 8 bytes ahead.
constexpr size_t kBitPadding = 384;

// Copies the entropy-coded bytes at [pos, size) up to the next marker to `out` without stuffing and appends
// kBitPadding zeros; `out` has room for size - pos + kBitPadding. Returns the number of bytes before the padding;
// `pos` moves to the 0xFF of the marker (or to `size`).
size_t unstuff(const uint8_t* data, size_t size, size_t& pos, uint8_t* out);

// Bits are taken from the top of `buffer`; `count` of them are valid (more may be there).
struct Bits {
  uint64_t buffer = 0;
  int64_t count = 0;
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;

  void start(const uint8_t* p, size_t n) { *this = {0, 0, p, p + n}; }
};

// One block position of the MCU and where its coefficients go.
struct McuBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  int component = 0;
  // Of the stored block with index 0, `stride` apart: 64 in natural order, which must be zero, or 1, the DC alone.
  int16_t* coefficients = nullptr;
  uint8_t* ends = nullptr;        // per stored block: 1 + the last zig-zag position that may be non-zero
  int32_t first = 0, stored = 0;  // kept are block columns first .. first + stored - 1
  int32_t stride = 64;
  int32_t step = 1, offset = 0;     // MCU m holds block column m * step + offset
};

struct Mcu {
  int count = 0;
  McuBlock block[kMaxBlocksPerMcu];
  uint32_t prediction[kMaxComponents] = {};  // unsigned: a damaged file may wrap it
};

// Decodes MCUs [first, last) of one MCU row. Stops early, behind the MCU that used bits past the end of the data;
// returns the position reached and sets `overrun`.
using DecodeMcus = int (*)(Bits& bits, Mcu& mcu, int first, int last, bool& overrun);
DecodeMcus mcu_decoder();  // for the instruction set in force

}  // namespace stoker::jpeg
