// SPDX-License-Identifier: Apache-2.0
// Entropy decoding of progressive scans, one row of MCUs at a time. What libjpeg asks of a coefficient while refining,
// whether it is zero, is kept in one 64-bit mask per block; coefficients themselves only where they are wanted.
#pragma once
#include <cstdint>

#include "jpeg_huffman.hpp"

namespace stoker::jpeg {

// Fewer than for sequential files, whose tables serve the whole file: here a dozen scans take turns in the caches.
constexpr int kBandBits = 10;

// Entry, low to high: length of the code and the bits behind it (8 bits; 0: longer than kBandBits), step (8), value
// (16). A step is run + 1 zig-zag positions, or kEndOfBlock, whose value is the number of blocks that end.
struct BandTable {
  Code code;
  uint32_t entry[1 << kBandBits];
};
// Takes the 16 counts and the symbols of a DHT segment; fails on an impossible code.
bool build_band(const uint8_t* dht, bool refinement, BandTable& table, Damage* damage = nullptr);

// An AC scan and its state.
struct Band {
  const BandTable* table = nullptr;
  int first = 1, last = 63, shift = 0;  // zig-zag positions, bits still to come
  uint32_t ended = 0;                   // blocks to come whose band has ended
};

// One row of blocks of the scan's component.
struct BandRow {
  uint64_t* masks = nullptr;        // per block: which zig-zag positions are not zero
  int16_t* coefficients = nullptr;  // of block `first_kept`, natural order
  int32_t first_kept = 0, kept = 0;

  int16_t* block(int column) const {  // null: not kept
    const uint32_t at = static_cast<uint32_t>(column - first_kept);
    return at < static_cast<uint32_t>(kept) ? coefficients + 64 * static_cast<size_t>(at) : nullptr;
  }
};

// All decode units (MCUs) [first, last), stop behind the one that used bits past the end of the data, and return the
// position reached.
struct ProgressiveCoders {
  int (*dc_first)(Bits& bits, Mcu& mcu, int shift, int first, int last, bool& overrun);
  int (*dc_refine)(Bits& bits, Mcu& mcu, int shift, int first, int last, bool& overrun);
  int (*ac_first)(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun);
  int (*ac_refine)(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun);
};
const ProgressiveCoders& progressive_coders();  // for the instruction set in force

}  // namespace stoker::jpeg
