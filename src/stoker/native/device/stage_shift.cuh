// SPDX-License-Identifier: Apache-2.0
// Images that an affine interpolator only shifts by whole pixels, such as pasted and padded ones. Elements have any
// type: chunks of a line are moved, as by stages that only move elements, and bytes outside of the source are replaced.
#pragma once
#include "device/stage_moves.cuh"
#include "device/stage_sample.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Lines of a shifted image. A block keeps them in shared memory.
struct ShiftedLines : Pieces {
  const uint8_t* from;
  uint8_t* to;
  int64_t from_step, to_step;  // from line to line
  uint64_t first, last;        // addresses of the source's first byte and after its last one
  int64_t left, up;            // Shift::left and up
  int32_t line, source_line, source_height;
  uint32_t fill;

  // Describe a row, by one thread.
  void fill_in(const AffineSlot& s, const Port& out, int64_t height) {
    count = static_cast<uint32_t>(height);
    from = reinterpret_cast<const uint8_t*>(s.source.data), to = reinterpret_cast<uint8_t*>(out.data);
    from_step = s.source.row, to_step = out.stride[1];
    left = s.shift.left, up = s.shift.up;
    line = static_cast<int32_t>(s.shift.line), source_line = static_cast<int32_t>(s.shift.source_line);
    source_height = static_cast<int32_t>(s.source.height);
    fill = static_cast<uint32_t>(s.shift.fill);
    const int64_t reach = (s.source.height - 1) * from_step;
    first = s.source.data + static_cast<uint64_t>(reach < 0 ? reach : 0);
    last = s.source.data + static_cast<uint64_t>((reach < 0 ? 0 : reach) + s.shift.source_line);
  }
};

// The lowest `count` bytes of a word.
inline uint32_t lowest_bytes(int count) { return count <= 0 ? 0 : count >= 4 ? 0xFFFFFFFFu : (1u << (8 * count)) - 1; }

// 16 aligned bytes of an output line. `at` is the byte of the line at which they begin; it is negative if they begin
// before it. Those from `low` to `high` are in the source.
struct ShiftedChunk {
  static constexpr int kTogether = kChunksTogether, kThreadsEach = 1, kBytes = 16;
  ShiftedPlace place;
  int32_t at;
  int32_t low, high;
  uint32_t words[5];

  static uint32_t per_line(const ShiftedLines& lines) { return shift_chunks(lines.line); }

  // Find a chunk, and return its first byte in the source.
  const uint8_t* find(const ShiftedLines& lines, uint32_t number_of_line, uint32_t number) {
    uint8_t* to = lines.to + number_of_line * lines.to_step;
    at = static_cast<int32_t>(number) * kBytes - static_cast<int32_t>(reinterpret_cast<uint64_t>(to) % kBytes);
    const int64_t y = number_of_line + lines.up, x = at + lines.left;
    const uint8_t* from = lines.from + y * lines.from_step + x;
    const int64_t left = lines.source_line - x;
    const bool inside = y >= 0 && y < lines.source_height && x < lines.source_line && x > -kBytes;
    const int32_t before = begin(), after = end(lines);
    low = inside && x < 0 ? static_cast<int32_t>(-x) : 0;
    high = !inside ? 0 : left < kBytes ? static_cast<int32_t>(left) : kBytes;
    low = low > before ? low : before;
    high = high < after ? high : after;
    if (low >= high) low = high = 0;
    place.set(to + at, from);
    return from;
  }
  // The chunk's bytes that belong to the line; none if its end is not after its beginning.
  int32_t begin() const { return at < 0 ? -at : 0; }
  int32_t end(const ShiftedLines& lines) const {
    const int32_t left = lines.line - at;
    return left < kBytes ? left : kBytes;
  }

  bool read(const ShiftedLines& lines, uint32_t line, uint32_t number) {
    const uint8_t* from = find(lines, line, number);
    if (low >= high || read_words<4>(from, lines.first, lines.last, words)) return true;
    at = kNone;
    return false;
  }
  void write(const ShiftedLines& lines) const {
    if (at >= lines.line) return;
    const int32_t before = begin(), after = end(lines);
    uint32_t moved[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      moved[i] = lines.fill;
      if (low >= high) continue;
      const uint32_t found = gpu::funnel_right(words[i + 1], words[i], place.shift());
      const uint32_t wanted = lowest_bytes(high - 4 * i) & ~lowest_bytes(low - 4 * i);
      moved[i] = (found & wanted) | (moved[i] & ~wanted);
    }
    if (before == 0 && after == kBytes)
      *reinterpret_cast<Vector<4>*>(place.to()) = {moved[0], moved[1], moved[2], moved[3]};
    else write_part(place.to(), moved, before, after);
  }

  // The same, byte by byte.
  struct Careful {
    const uint8_t* from;
    uint8_t* to;
    int32_t before, after, low, high;

    bool read(const ShiftedLines& lines, uint32_t line, uint32_t number) {
      ShiftedChunk chunk;
      from = chunk.find(lines, line, number);
      to = chunk.place.to();
      before = chunk.begin(), after = chunk.end(lines), low = chunk.low, high = chunk.high;
      return true;
    }
    void write(const ShiftedLines& lines) const {
      STOKER_NO_UNROLL
      for (int32_t b = before; b < after; ++b)
        to[b] = b >= low && b < high ? from[b] : static_cast<uint8_t>(lines.fill >> (b % 4 * 8));
    }
  };

 private:
  static constexpr int32_t kNone = 0x7FFFFFFF;
};

// Move a block's share of a row's chunks.
inline void run_shifted(uint64_t slots, uint64_t slot_bytes, uint64_t, const gpu::RowBlock& work) {
  STOKER_SHARED(ShiftedLines, lines);
  const auto* slot = reinterpret_cast<const Slot*>(slots + work.row * slot_bytes);
  const auto* affine = reinterpret_cast<const AffineSlot*>(slot + 1);
  if (gpu::thread_index() == 0) lines.fill_in(*affine, reinterpret_cast<const Port*>(affine + 1)[1], slot->extent[1]);
  gpu::block_barrier();
  move_pieces<ShiftedChunk>(lines, work.number, shift_blocks(affine->shift.line, slot->extent[1]));
}

}  // namespace stoker::stage

// Define the kernel for rows that are a Shift.
#define STOKER_SHIFTED \
  STOKER_INTERPOLATOR_KERNEL(stoker_shifted, stoker::stage::run_shifted, stoker::stage::kMoveBlocks)
