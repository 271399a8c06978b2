// SPDX-License-Identifier: Apache-2.0
// Huffman tables, the bit buffer and the MCU loop of the sequential decoder.
#pragma once
#include <cstddef>
#include <cstdint>

#include "jpeg/jpeg.hpp"

namespace stoker::jpeg {

// Number of bits per table lookup. More bits resolve more symbols per lookup but miss the L1 cache more often.
constexpr int kAcBits = 12;
constexpr int kDcBits = 9;

// Canonical code, for symbols that the lookup tables do not resolve.
struct Code {
  Damage* damage = nullptr;  // receives wrong codes; null: not requested
  uint32_t limit[17];        // limit[l]: first 16-bit prefix that is not a code of l or fewer bits
  int32_t value_offset[17];
  uint8_t symbol[256];
};

// Entry: bits 0-7 total length (code and value; 0: code longer than kDcBits), 8-15 code length, 16-23 value size.
struct DcTable {
  Code code;
  uint32_t entry[1 << kDcBits];
};

// One lookup decodes up to two symbols and always writes two values, without a branch on their number: an absent second
// symbol repeats the first. `advance` is on the critical path to the next lookup and small enough for the L1 cache;
// `values` is only needed for the writes. A step is run + 1 zig-zag positions, kEndOfBlock for EOB.
struct AcTable {
  Code code;
  // Low 6 bits: length of both symbols; above: the sum of their steps, or kUnresolved (with length 0) if even the first
  // symbol is longer than the lookup.
  uint16_t advance[1 << kAcBits];
  // From low to high: step of the first symbol (8 bits), value of the first (12), value of the second (12; unresolved:
  // the symbol).
  uint32_t values[1 << kAcBits];
  // Rarely read. Length of the first symbol; unresolved: length of its code alone, 0 if the code is too long as well.
  uint8_t first_length[1 << kAcBits];
};
constexpr int kEndOfBlock = 64;
constexpr int kUnresolved = 128;

// Both functions take the 16 counts and the symbols of a DHT segment (validated by `parse`) and fail on an impossible
// code.
bool build_dc(const uint8_t* dht, DcTable& table, Damage* damage = nullptr);
// Building with `pairs` costs a few microseconds and pays off from a few kilobytes of data on. The standard's codes are
// built once, with pairs, and copied.
bool build_ac(const uint8_t* dht, bool pairs, AcTable& table, Damage* damage = nullptr);

int natural_position(int zigzag);  // 0..63: row * 8 + column

// Tables of annex K of the standard, which libjpeg supplies to files without tables (motion JPEG frames). Null: there
// is no default.
const uint8_t* standard_dc(int index);
const uint8_t* standard_ac(int index);

// Number of readable zero bytes required after unstuffed data: a damaged block can use 64 symbols of 31 bits past the
// end before the overrun is noticed, and the bit buffer reads 8 bytes ahead.
constexpr size_t kBitPadding = 384;

// Copy the entropy-coded bytes from `pos` up to the next marker to `out` without stuffing and append kBitPadding zeros;
// `out` must hold size - pos + kBitPadding bytes. Return the number of bytes before the padding; `pos` moves to the
// 0xFF of the marker (or to `size`).
size_t unstuff(const uint8_t* data, size_t size, size_t& pos, uint8_t* out);

// Bit buffer. Bits are taken from the top of `buffer`; at least `count` of them are valid.
struct Bits {
  uint64_t buffer = 0;
  int64_t count = 0;
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;

  void start(const uint8_t* p, size_t n) { *this = {0, 0, p, p + n}; }
};

// One block position of the MCU and the destination of its coefficients.
struct McuBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  int component = 0;
  // Coefficients of the stored block with index 0; blocks are `stride` apart: 64 coefficients in natural order, which
  // must be zero, or 1 for the DC alone.
  int16_t* coefficients = nullptr;
  uint8_t* ends = nullptr;        // per stored block: 1 + the last zig-zag position that may be non-zero
  int32_t first = 0, stored = 0;  // the stored block columns are first .. first + stored - 1
  int32_t stride = 64;
  int32_t step = 1, offset = 0;  // MCU m has block column m * step + offset
};

struct Mcu {
  int count = 0;
  McuBlock block[kMaxBlocksPerMcu];
  uint32_t prediction[kMaxComponents] = {};  // unsigned: a damaged file may make it wrap
};

// Decode MCUs [first, last) of one MCU row. Stop early after the MCU that used bits past the end of the data. Return
// the position reached and set `overrun`.
using DecodeMcus = int (*)(Bits& bits, Mcu& mcu, int first, int last, bool& overrun);
DecodeMcus mcu_decoder();  // for the current instruction set

}  // namespace stoker::jpeg
