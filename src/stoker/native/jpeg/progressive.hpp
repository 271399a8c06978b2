// SPDX-License-Identifier: Apache-2.0
// Entropy decoding of progressive scans, one row of MCUs at a time. Refinement depends on whether a coefficient is
// zero, which is kept in one 64-bit mask per block; coefficients themselves are kept only for needed blocks.
#pragma once
#include <cstdint>

#include "jpeg/huffman.hpp"

namespace stoker::jpeg {

// Smaller than for sequential files, whose tables serve the whole file: here the tables of a dozen scans share the
// caches.
constexpr int kBandBits = 10;

// Entry, from low to high: length of the code and of the bits after it (8 bits; 0: longer than kBandBits), step (8),
// value (16). A step is run + 1 zig-zag positions, or kEndOfBlock, whose value is the number of blocks that end.
struct BandTable {
  Code code;
  uint32_t entry[1 << kBandBits];
};
// Build a table from the 16 counts and the symbols of a DHT segment; fails on an impossible code.
bool build_band(const uint8_t* dht, bool refinement, BandTable& table, Damage* damage = nullptr);

// AC scan and its state.
struct Band {
  const BandTable* table = nullptr;
  int first = 1, last = 63, shift = 0;  // zig-zag positions, number of low bits left to later scans
  uint32_t ended = 0;                   // number of following blocks whose band has ended
};

// One row of blocks of the scan's component.
struct BandRow {
  uint64_t* masks = nullptr;        // per block: the non-zero zig-zag positions
  int16_t* coefficients = nullptr;  // of block `first_kept`, in natural order
  int32_t first_kept = 0, kept = 0;

  int16_t* block(int column) const {  // null: the block is not kept
    const uint32_t at = static_cast<uint32_t>(column - first_kept);
    return at < static_cast<uint32_t>(kept) ? coefficients + 64 * static_cast<size_t>(at) : nullptr;
  }
};

// Decoders by kind of scan. All decode units (MCUs) [first, last), stop after the unit that used bits past the end of
// the data, and return the position reached.
struct ProgressiveCoders {
  int (*dc_first)(Bits& bits, Mcu& mcu, int shift, int first, int last, bool& overrun);
  int (*dc_refine)(Bits& bits, Mcu& mcu, int shift, int first, int last, bool& overrun);
  int (*ac_first)(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun);
  int (*ac_refine)(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun);
};
const ProgressiveCoders& progressive_coders();  // for the current instruction set

}  // namespace stoker::jpeg
