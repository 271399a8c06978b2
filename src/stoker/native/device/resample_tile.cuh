// SPDX-License-Identifier: Apache-2.0
// Both passes of a resampling of 8-bit RGB images in one kernel, with the image between them in shared memory.
//
// The sums are products of byte matrices (device/resample_bands.cuh): 16 outputs by 8 lines from 32 positions at a
// time. In the first pass outputs are columns and lines are source rows, so that positions are adjacent pixels, which
// are loaded directly; the products are stored transposed, with the source rows contiguous. In the second pass outputs
// are rows and lines are columns; positions are the rows of the first pass. Positions without a weight are multiplied
// with zeros, whatever their bytes are.
#pragma once
#include "device/resample_bands.cuh"
#include "device/resample_rows.cuh"
#include "device/resample_store.cuh"

namespace stoker::stage {

// Image between the passes: column by column, or row by row if the vertical pass is first.
struct alignas(16) Between {
  uint8_t at[3][kTileLines][kTilePositions];
};

// Tile of a block: kTileLines columns from `x` on, rows [y, y_end), computed from source rows [row, row_end).
struct TileBounds {
  int32_t x, x_end, y, y_end;  // x_end: end of the image
  int32_t row, row_end;
  int32_t last_column, last_row;
};

// Tile of a block with a copy of the row's descriptor: the compiler must assume that stores change the descriptor and
// would read it again and again.
struct ResampleTile : TileBounds {
  const ResampleScratch scratch;

  ResampleTile(uint32_t tile, const ResampleSlot& s, const ResampleScratch& at) : TileBounds{}, scratch(at) {
    x_end = static_cast<int32_t>(s.horizontal.out);
    last_column = x_end - 1;
    last_row = static_cast<int32_t>(s.vertical.out) - 1;
    const uint32_t across = (static_cast<uint32_t>(x_end) + kTileLines - 1) / kTileLines, down = tile / across;
    x = static_cast<int32_t>(tile - down * across) * kTileLines;
    const auto rows = static_cast<int32_t>(scratch.tile_rows);
    y = static_cast<int32_t>(down) * rows;
    y_end = y + rows <= last_row ? y + rows : last_row + 1;
    const auto* taps = array_at<resample::Taps>(scratch.vertical_taps);
    const resample::Taps a = taps[y], b = taps[y_end - 1];
    row = (a.start < b.start ? a.start : b.start) & ~3;
    row_end = a.start + a.count > b.start + b.count ? a.start + a.count : b.start + b.count;
    if (row_end <= row) row_end = row + 1;
  }
};

// A warp's part of the first pass, over source rows [row, row_end). There are two groups of warps, one for each 16
// columns; their positions begin with group `begin`.
struct FirstPart {
  int32_t row, row_end, begin, groups;

  int32_t end() const { return begin + (groups > 8 ? 16 : 8); }  // end of the groups that are loaded

  // multiply(two, set, sets, step, load, take) is called like multiply_sets.
  template <class Rows, class Multiply>
  void run(const Rows& rows, Between& between, Multiply&& multiply) const {
    const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
    constexpr int32_t kStep = kThreads / gpu::kWarp / 2;
    const auto line_of = [&](int32_t set) {
      const int32_t wanted = row + 8 * set + static_cast<int32_t>(lane / 4);
      return rows.at(wanted < row_end ? wanted : row_end - 1, begin + static_cast<int32_t>(lane % 4));
    };
    // The first words of a set are loaded while the set before is computed, which brings their cache lines into the
    // cache.
    uint32_t ahead[4] = {};
    const auto start = [&](int32_t set) {
      if constexpr (Rows::kAhead) {
        const auto line = line_of(set);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (i == 0 || 4 * i < groups) ahead[i] = line.begin(4 * i);
      }
    };
    start(static_cast<int32_t>(warp / 2));
    uint8_t* to = &between.at[0][16 * (warp % 2) + lane / 4][2 * (lane % 4)];
    multiply(
        groups > 8, static_cast<int32_t>(warp / 2), (row_end - row + 7) / 8, kStep,
        [&](int32_t set, int32_t block, uint32_t (&bytes)[3][2]) {
          const auto line = line_of(set);
          uint32_t channel[3];
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int32_t group = 8 * block + 4 * half;
            if (half == 0 || group < groups) {
              if constexpr (Rows::kAhead) line.load(group, block ? ahead[2 + half] : ahead[half], channel);
              else line.load(group, channel);
            }
#pragma unroll
            for (int c = 0; c < 3; ++c) bytes[c][half] = channel[c];
          }
          if (block == (groups > 8 ? 1 : 0)) start(set + kStep);
        },
        [&](int32_t set, int c, const Sums& sums) {
#pragma unroll
          for (int r = 0; r < 2; ++r)
            *reinterpret_cast<uint16_t*>(to + (c * kTileLines + 8 * r) * kTilePositions + 8 * set) =
                static_cast<uint16_t>(sums.pair(r));
        });
  }
};

// Return the weights of a warp's 16 columns from `x` on.
inline Bands first_bands(const ResampleTile& tile, int32_t x) {
  return {tile.last_column, tile.scratch.horizontal_taps, tile.scratch.horizontal_weights,
          tile.scratch.horizontal_pitch, x};
}

inline void first_pass(const Source& source, const ResampleTile& tile, Between& between) {
  const int32_t x = tile.x + 16 * static_cast<int32_t>(gpu::thread_index() / gpu::kWarp % 2);
  if (x >= tile.x_end) return;
  const Bands bands = first_bands(tile, x);
  const FirstPart part{tile.row, tile.row_end, bands.begin(), bands.groups()};
  const auto multiply = [&](bool, int32_t set, int32_t sets, int32_t step, auto&& load, auto&& take) {
    multiply_lines(bands, set, sets, step, load, take);
  };
  if (inside(source, part.end())) part.run(PackedRows<true>(source), between, multiply);
  else part.run(PackedRows<false>(source), between, multiply);
}

// Load a set of eight lines at a block's positions; `from` is the thread's line of the first set, at its first
// position.
inline void load_lines(const uint8_t* from, int32_t set, int32_t block, uint32_t (&bytes)[3][2]) {
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const auto* words =
        reinterpret_cast<const uint32_t*>(from + (c * kTileLines + 8 * set) * kTilePositions + 32 * block);
    bytes[c][0] = words[0];
    bytes[c][1] = words[4];
  }
}

// Each warp computes 16 rows at a time.
template <class Store>
inline void second_pass(const Store& store, const TileBounds& tile, const ResampleScratch& scratch,
                        const Between& between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const int32_t x = tile.x + static_cast<int32_t>(2 * (lane % 4));
  const int32_t sets = tile.x_end - tile.x < kTileLines ? (tile.x_end - tile.x + 7) / 8 : kTileLines / 8;
  for (int32_t y = tile.y + 16 * static_cast<int32_t>(warp); y < tile.y_end; y += 16 * (kThreads / gpu::kWarp)) {
    const Bands bands(tile.last_row, scratch.vertical_taps, scratch.vertical_weights, scratch.vertical_pitch, y);
    const uint8_t* from = &between.at[0][lane / 4][4 * (bands.begin() + static_cast<int32_t>(lane % 4)) - tile.row];
    const int32_t top = y + static_cast<int32_t>(lane / 4);
    uint8_t* to = store.at(top, x);
    uint32_t pair[3][2];
    multiply_lines(
        bands, 0, sets, 1,
        [&](int32_t set, int32_t block, uint32_t (&bytes)[3][2]) { load_lines(from, set, block, bytes); },
        [&](int32_t set, int c, const Sums& sums) {
          pair[c][0] = sums.pair(0);
          pair[c][1] = sums.pair(1);
          if (c < 2 || x + 8 * set >= tile.x_end) return;
          const bool second = x + 8 * set + 1 < tile.x_end;
          uint8_t* here = to + 8 * set * store.pixel();
          if (top < tile.y_end) store.put(here, pair[0][0], pair[1][0], pair[2][0], second);
          if (top + 8 < tile.y_end) store.put(here + 8 * store.row(), pair[0][1], pair[1][1], pair[2][1], second);
        });
  }
}

// Hide the origin of a number from the compiler, so that it does not keep values that were computed or read from it in
// registers.
inline uint64_t forgotten(uint64_t address) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(address));
#endif
  return address;
}
inline int32_t forgotten(int32_t v) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(v));
#endif
  return v;
}

// A block's row, its descriptor, and its tile.
struct TileWork {
  const gpu::RowBlock& work;
  const uint8_t* slot;

  TileWork(uint64_t slots, uint64_t slot_bytes, const gpu::RowBlock& of)
      : work(of), slot(reinterpret_cast<const uint8_t*>(slots) + of.row * slot_bytes + sizeof(Slot)) {}
  const ResampleSlot& interpolator() const { return *reinterpret_cast<const ResampleSlot*>(slot); }
  const Port& output() const { return *reinterpret_cast<const Port*>(slot + sizeof(ResampleSlot) + sizeof(Port)); }
  const ResampleScratch& scratch(uint64_t scratches) const {
    return reinterpret_cast<const ResampleScratch*>(scratches)[work.row];
  }
  ResampleTile tile(uint64_t scratches) const { return {work.number, interpolator(), scratch(scratches)}; }
};

inline void second_pass(const TileWork& at, uint64_t scratches, const TileBounds& tile, const Between& between) {
  const ResampleScratch& scratch = at.scratch(forgotten(scratches));
  if (scratch.direct) second_pass(PairStore(scratch, at.output(), tile.x_end), tile, scratch, between);
  else second_pass(WordStore(scratch, tile.x_end), tile, scratch, between);
}

// Compute one tile of a row's image.
inline void resample_tile(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  STOKER_SHARED(Between, between);
  const TileWork at(slots, slot_bytes, work);
  const ResampleTile tile = at.tile(scratches);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 1000  // otherwise its registers would spill there
  STOKER_SHARED(TileBounds, bounds);
  if (gpu::thread_index() == 0) bounds = tile;
#else
  const TileBounds& bounds = tile;
#endif
  first_pass(at.interpolator().source, tile, between);
  gpu::block_barrier();
  // Constructed again, so that nothing is kept in registers between the passes.
  second_pass(TileWork(slots, slot_bytes, work), scratches, bounds, between);
}

}  // namespace stoker::stage

#define STOKER_RESAMPLED STOKER_INTERPOLATOR_KERNEL(stoker_resampled, stoker::stage::resample_tile, 3)
