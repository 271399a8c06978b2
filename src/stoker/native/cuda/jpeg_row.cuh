// SPDX-License-Identifier: Apache-2.0
// What the host tells the JPEG kernels: about a row (a file and the window wanted of it), and where a batch keeps its
// intermediate results.
#pragma once
#include "device.cuh"
#include "planar_image.cuh"

namespace stoker::jpeg::gpu {

using planar::Spread;  // jpeg_picture.hpp's Upsample

constexpr int kMaxPlanes = planar::kComponents;
constexpr int kMaxMcuBlocks = 10;

// Why a row must be decoded elsewhere; bits, 0 where all is well. The file itself may still be fine.
enum Status : uint32_t {
  kTruncated = 1,       // the data end before the image does, or no marker follows them
  kFilled = 2,          // several 0xFF in a row inside the data
  kRestartDamage = 4,   // a restart marker is missing or out of order
  kSlow = 8,            // the budget of synchronisation rounds is spent
  kStrayed = 16,        // decoding did not go as the file's index entry says, or of a part the data are others
  kFailures = 0xFFFF,
  kNotRead = 1 << 16,   // the index entry is of other data; the row was decoded without
};

enum class Colour : uint8_t { Gray, YCbCr, RGB };                       // jpeg.hpp's Model
enum class Wanted : uint8_t { RGB, BGR, GRAY, YCbCr };                  // jpeg.hpp's Format

// One component within the window. Blocks and samples are counted from the image's corner.
struct Plane : planar::Shape {
  uint16_t first_column, first_row, columns, rows;  // blocks needed; no columns: the component is not
  uint8_t h, v;
  uint8_t wide;         // quantiser of 16 bits
  uint8_t first_block;  // in the MCU
  uint32_t quantiser;   // where its 64 zig-zag values are in the file
};

struct Row {
  uint64_t file;
  uint64_t out;             // where the window's first stored pixel goes, if pixels are made
  uint64_t made;            // coefficients that the host made, complete and in natural order; 0: none
  int64_t step_y, step_x;   // bytes between stored rows and columns at the destination
  uint32_t file_bytes;
  uint32_t scan;            // where the entropy-coded data begin
  uint32_t dc[kMaxPlanes], ac[kMaxPlanes];  // where the Huffman tables of each pair are; 0: there is no such pair
  int32_t x0, y0, width, height;            // the window, in stored pixels
  uint32_t mcu_columns, mcu_rows, needed_rows, restart_interval;
  uint8_t components, blocks;               // `blocks` of an MCU
  Colour colour;
  Wanted wanted;
  uint8_t component[kMaxMcuBlocks];         // of each block of the MCU
  uint8_t period;                           // the pairs of tables of the MCU's blocks repeat after so many blocks
  bool known;                               // `index` can be read
  uint32_t pairs;                           // of the blocks, two bits each, the first one lowest
  uint32_t first_made[kMaxPlanes];          // the planes' first ones, in blocks
  uint64_t index;                           // the file's entry, to be read or to be written; 0: none
  uint32_t first_row;                       // of MCUs, that the window needs
  uint32_t slot;                            // the host's, of the entry
  // Where `file` is its header and some chunks of its data (jpeg_index.cuh): which, and how many words of unstuffed
  // data are before them. part_end 0: it is all there.
  uint32_t part_begin, part_end, part_word;
  uint32_t seed;                            // of checksums
  uint32_t outline;                         // where in the report the host looks for the new entry's
  uint16_t pieces;                          // of a subsequence in `index`
  uint16_t shares;                          // CTAs that decode a known file together
  planar::Image image;                      // of the row's samples, if they stay
  Plane plane[kMaxPlanes];
};
static_assert(sizeof(Plane) == 24 && sizeof(Row) == 384);

struct Checksum {
  uint32_t low, high;
};

// Sums that tell data apart by every word and its place. `seed` keeps them from being foreseen.
STOKER_DEVICE void add_to(Checksum& sum, uint32_t word, uint32_t at, uint32_t seed) {
  const uint64_t product = static_cast<uint64_t>(word ^ (at * 0x9E3779B1u + seed)) * ((at * 0x85EBCA77u + seed) | 1);
  sum.low += static_cast<uint32_t>(product);
  sum.high += static_cast<uint32_t>(product >> 32);
}

// Device memory of one row. `states` subsequences at most.
struct Place {
  uint32_t row;
  uint32_t segments;         // between restart markers
  uint32_t states;
  uint32_t pitch[kMaxPlanes];
  uint64_t words;            // unstuffed data in 32-bit words, first bit on top, followed by kPaddingWords zeros
  uint64_t segment_start;    // segments + 1 byte positions in them
  uint64_t segment_first;    // segments + 1: the first subsequence of each
  uint64_t state;            // see SubsequenceState
  uint64_t checksum;         // of the words
  uint64_t homes;            // per block in scan order: which of the kept blocks it is, or kNoHome
  uint64_t dc;               // per block in scan order: difference, then prediction
  uint64_t coefficients;     // per needed block 64 in zig-zag order, without the first
  uint32_t first_home[kMaxPlanes];    // the planes' first blocks among them
  uint32_t unused;
  uint64_t samples[kMaxPlanes];       // of the needed blocks, rows `pitch` apart
};
static_assert(sizeof(Place) % 8 == 0);

constexpr uint32_t kPaddingWords = 8;
constexpr uint32_t kNoHome = 0xFFFFFFFFu;

// Work of one CTA: which part of which place.
struct Item {
  uint32_t place_and_plane;  // plane in the upper two bits
  uint32_t first;            // block or group of pixels
};
constexpr uint32_t kBlocksPerItem = 64, kGroupsPerItem = 1024, kPixelsPerGroup = 4;

// Where decoding stood at some distances from a subsequence's begin: a later pass that gets there in the same state has
// nothing new to find behind.
constexpr uint32_t kMarks = 6;
STOKER_DEVICE uint32_t mark_distance(uint32_t i) { return 128u << i; }  // bits

// Where things lie in `Place::state`, for each of `states` subsequences.
struct SubsequenceState {
  uint32_t* blocks;  // completed, then their running sum
  uint32_t* list;    // of those to be decoded again
  uint32_t* marks;   // the k-th of subsequence i at k * states + i: state, and blocks completed above
  uint16_t* entry;
  uint16_t* exit;

  STOKER_DEVICE explicit SubsequenceState(const Place& place) {
    blocks = reinterpret_cast<uint32_t*>(place.state);
    list = blocks + place.states;
    marks = list + place.states;
    entry = reinterpret_cast<uint16_t*>(marks + kMarks * place.states);
    exit = entry + place.states;
  }
  static constexpr uint64_t kBytes = 12 + 4 * kMarks;
};

template <typename T>
STOKER_DEVICE T* pointer(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace stoker::jpeg::gpu
