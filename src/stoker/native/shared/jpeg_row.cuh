// SPDX-License-Identifier: Apache-2.0
// Descriptors that the host passes to the JPEG kernels: a row (a file and the requested window), and the buffers of its
// intermediate results.
#pragma once
#include "shared/device.cuh"
#include "shared/planar_image.cuh"

namespace stoker::jpeg::gpu {

using planar::Spread;  // the Upsample of jpeg/picture.hpp

constexpr int kMaxPlanes = planar::kComponents;
constexpr int kMaxMcuBlocks = 10;

// Reasons why another decoder must take the row, as bits; 0 means success. The file itself may be intact.
enum Status : uint32_t {
  kTruncated = 1,      // the data end before the image does, or without a marker
  kFilled = 2,         // several consecutive 0xFF inside the data
  kRestartDamage = 4,  // a restart marker is missing or out of order
  kSlow = 8,           // the budget of synchronisation rounds is spent
  kStrayed = 16,       // decoding disagreed with the file's index entry, or the data of a part have another checksum
  kFailures = 0xFFFF,
  kNotRead = 1 << 16,  // the index entry belongs to other data; the row was decoded without it
};

enum class Colour : uint8_t { Gray, YCbCr, RGB };       // the Model of jpeg/jpeg.hpp
enum class Wanted : uint8_t { RGB, BGR, GRAY, YCbCr };  // the Format of jpeg/jpeg.hpp

// One component within the window. Blocks and samples are counted from the corner of the image.
struct Plane : planar::Shape {
  uint16_t first_column, first_row, columns, rows;  // needed blocks; zero columns: the component is not needed
  uint8_t h, v;
  uint8_t wide;         // the quantiser has 16 bits
  uint8_t first_block;  // index within the MCU
  uint32_t quantiser;   // offset of its 64 zig-zag values in the file
};

struct Row {
  uint64_t file;
  uint64_t out;                // address of the window's first stored pixel, if pixels are computed
  uint64_t host_coefficients;  // coefficients that the host decoded, complete and in natural order; 0: none
  int64_t step_y, step_x;      // bytes between stored rows and columns at the destination
  uint32_t file_bytes;
  uint32_t scan;                            // offset of the entropy-coded data
  uint32_t dc[kMaxPlanes], ac[kMaxPlanes];  // offsets of the Huffman tables of each pair; 0: there is no such pair
  int32_t x0, y0, width, height;            // the window, in stored pixels
  uint32_t mcu_columns, mcu_rows, needed_rows, restart_interval;
  uint8_t components, blocks;  // `blocks` is the number of blocks in an MCU
  Colour colour;
  Wanted wanted;
  uint8_t component[kMaxMcuBlocks];       // component of each block of the MCU
  uint8_t period;                         // the table pairs of the MCU's blocks repeat after this many blocks
  bool known;                             // `index` has a complete entry
  uint32_t pairs;                         // table pair of each block, two bits each, the first one lowest
  uint32_t first_host_block[kMaxPlanes];  // first block of each plane in `host_coefficients`
  uint64_t index;                         // address of the file's entry, to be read or written; 0: none
  uint32_t first_row;                     // first row of MCUs that the window needs
  uint32_t slot;                          // the host's number of the entry
  // Set if `file` has only the header and some chunks of the data (shared/jpeg_index.cuh): the range of the chunks, and
  // the number of unstuffed words before them. part_end 0: the file is complete.
  uint32_t part_begin, part_end, part_word;
  uint32_t seed;        // seed of checksums
  uint32_t outline;     // offset in the report of the new entry's outline
  uint16_t pieces;      // pieces per subsequence in `index`
  uint16_t shares;      // blocks (CTAs) that decode a known file together
  planar::Image image;  // layout of the row's samples, if later steps read them
  Plane plane[kMaxPlanes];
};
static_assert(sizeof(Plane) == 24 && sizeof(Row) == 384);

struct Checksum {
  uint32_t low, high;
};

// Checksum that depends on every word and its position. `seed` makes it unpredictable for the author of a file.
STOKER_DEVICE void add_to(Checksum& sum, uint32_t word, uint32_t at, uint32_t seed) {
  const uint64_t product = static_cast<uint64_t>(word ^ (at * 0x9E3779B1u + seed)) * ((at * 0x85EBCA77u + seed) | 1);
  sum.low += static_cast<uint32_t>(product);
  sum.high += static_cast<uint32_t>(product >> 32);
}

// Device memory of one row's intermediate results. It has space for `states` subsequences.
struct RowBuffers {
  uint32_t row;
  uint32_t segments;  // between restart markers
  uint32_t states;
  uint32_t pitch[kMaxPlanes];
  uint64_t words;          // unstuffed data in 32-bit words, first bit on top, followed by kPaddingWords zeros
  uint64_t segment_start;  // segments + 1 byte positions in `words`
  uint64_t segment_first;  // segments + 1 numbers: the first subsequence of each segment
  uint64_t state;          // see SubsequenceState; of a spread row one for each of its candidates
  uint64_t checksum;       // over `words`, if the row has an index entry
  // Of a row whose decoding is spread over the device, otherwise 0: its Tables and its Progress.
  uint64_t tables, progress;
  uint64_t homes;                   // per block in scan order: its index among the kept blocks, or kNoHome
  uint64_t dc;                      // per block in scan order: DC difference, later DC prediction
  uint64_t coefficients;            // per needed block 63 values in zig-zag order after an unused one
  uint32_t first_home[kMaxPlanes];  // first block of each plane among the kept blocks
  // Blocks (CTAs) of a spread row that unstuff, that find `homes`, and that write the coefficients.
  uint32_t unstuffers, finders, writers;
  uint64_t samples[kMaxPlanes];  // samples of the needed blocks; rows are `pitch` apart
};
static_assert(sizeof(RowBuffers) % 8 == 0);

// State of a row that is decoded by several blocks (CTAs).
struct Progress {
  uint32_t bits;  // per subsequence
  uint32_t left;  // writers that have not finished
};

constexpr uint32_t kPaddingWords = 8;
constexpr uint32_t kTablesBytes = 36144;  // size of Tables (device/jpeg_symbols.cuh)
constexpr uint32_t kNoHome = 0xFFFFFFFFu;

// Coefficient blocks, groups of pixels, or cleared units of 16 bytes of a thread block (CTA).
constexpr uint32_t kBlocksPerCta = 64, kGroupsPerCta = 1024, kPixelsPerGroup = 4, kClearsPerCta = 2048;

// Bytes that a thread unstuffs together.
constexpr uint32_t kUnstuffBytes = 16;

// The row of blocks (CTAs) that belong to no row.
constexpr uint32_t kNoRow = 0xFFFFFFFFu;

// Distances from the begin of a subsequence at which the decoder state is recorded. A later pass that reaches a mark in
// the same state can stop, because all later states are already known.
constexpr uint32_t kMarks = 6;

// Layout of a candidate's part of `RowBuffers::state` for `states` subsequences.
struct SubsequenceState {
  uint32_t* blocks;  // completed blocks, then their running sum
  uint32_t* list;    // subsequences to be decoded again; of a spread row's second candidate the selected candidates
  // Mark k of subsequence i is at k * states + i: the state, and the completed blocks in the upper bits.
  uint32_t* marks;
  uint16_t* entry;
  uint16_t* exit;
  uint32_t spacing;  // of marks, in bits; 0: each is twice as far as the one before

  STOKER_DEVICE explicit SubsequenceState(const RowBuffers& buffers, uint32_t spacing = 0, uint32_t candidate = 0)
      : spacing(spacing) {
    blocks = reinterpret_cast<uint32_t*>(buffers.state + candidate * kBytes * buffers.states);
    list = blocks + buffers.states;
    marks = list + buffers.states;
    entry = reinterpret_cast<uint16_t*>(marks + kMarks * buffers.states);
    exit = entry + buffers.states;
  }
  STOKER_DEVICE uint32_t distance(uint32_t mark) const { return spacing ? spacing * (mark + 1) : 128u << mark; }
  static constexpr uint64_t kBytes = 12 + 4 * kMarks;
};

// Candidates of a subsequence that continue those of the one before (device/jpeg_spread.cuh).
constexpr uint32_t kMoreCandidates = 6;

// Return the number of candidates for the decoding of each subsequence. A spread row has one for each block of its
// period, and some more.
STOKER_DEVICE uint32_t candidates_of(const Row& row, bool spread) { return spread ? row.period + kMoreCandidates : 1; }

template <typename T>
STOKER_DEVICE T* pointer(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace stoker::jpeg::gpu
