// SPDX-License-Identifier: Apache-2.0
// Both passes of a resampling in one kernel, see resample_tile.cuh, where the vertical one is first. Positions of the first
// pass are then the source's rows, which do not lie side by side: a block loads its part of the source and stores it turned.
#pragma once
#include "resample_tile.cuh"

namespace stoker::stage {

// The tile of a block, as ResampleTile; also which columns of the source are under it.
struct DownTile {
  const ResampleRoom room;
  int32_t x, y, last_column, last_row;
  int32_t row, row_end, column, column_end;

  DownTile(uint32_t tile, const ResampleSlot& s, const ResampleRoom& at)
      : room(at), last_column(static_cast<int32_t>(s.horizontal.out) - 1),
        last_row(static_cast<int32_t>(s.vertical.out) - 1) {
    const uint32_t across = (static_cast<uint32_t>(last_column) + kColumns) / kColumns, down = tile / across;
    x = static_cast<int32_t>(tile - down * across) * kColumns;
    y = static_cast<int32_t>(down) * kFirstRows;
    under(room.vertical_taps, y, y + kFirstRows - 1 < last_row ? y + kFirstRows - 1 : last_row, row, row_end);
    under(room.horizontal_taps, x, x + kColumns - 1 < last_column ? x + kColumns - 1 : last_column, column, column_end);
  }

 private:
  // The positions of outputs `first` to `last`, from a multiple of four on.
  static void under(uint64_t taps_at, int32_t first, int32_t last, int32_t& begin, int32_t& end) {
    const auto* taps = array_at<resample::Taps>(taps_at);
    const resample::Taps a = taps[first], b = taps[last];
    begin = (a.start < b.start ? a.start : b.start) & ~3;
    end = a.start + a.count > b.start + b.count ? a.start + a.count : b.start + b.count;
    if (end <= begin) end = begin + 1;
  }
};

// The source under a tile: [channel][column][row].
template <class Rows>
inline void turn_source(const Rows& rows, const DownTile& tile, const FirstLayout& layout, uint8_t* turned) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const int32_t across = layout.columns / 16, sets = (tile.row_end - tile.row + 7) / 8 * across;
  for (int32_t set = static_cast<int32_t>(warp); set < sets; set += kThreads / gpu::kWarp) {
    const int32_t at = 8 * (set / across) + static_cast<int32_t>(lane / 4), wanted = tile.row + at;
    const int32_t group = 4 * (set % across) + static_cast<int32_t>(lane % 4);
    const auto line = rows.at(wanted < tile.row_end ? wanted : tile.row_end - 1, tile.column / 4);
    uint32_t channel[3];
    line.load(group, channel);
#pragma unroll
    for (int c = 0; c < 3; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        turned[(c * layout.columns + 4 * group + i) * layout.source_pitch + at] =
            static_cast<uint8_t>(channel[c] >> (8 * i));
  }
}

// From [channel][line][position], of `lines` lines: those of a set of eight at a block's positions, `from` on.
inline void load_lines(const uint8_t* from, int32_t lines, int32_t pitch, int32_t set, int32_t block,
                       uint32_t (&bytes)[3][2]) {
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const auto* words = reinterpret_cast<const uint32_t*>(from + (c * lines + 8 * set) * pitch + 32 * block);
    bytes[c][0] = words[0];
    bytes[c][1] = words[4];
  }
}

// The vertical pass: two groups of warps, one for each 16 rows.
inline void down_pass(const DownTile& tile, const FirstLayout& layout, const uint8_t* turned, uint8_t* between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const auto line = static_cast<int32_t>(lane / 4), part = static_cast<int32_t>(lane % 4);
  const int32_t down = 16 * static_cast<int32_t>(warp % 2);
  if (tile.y + down > tile.last_row) return;
  const Bands bands(tile.last_row, tile.room.vertical_taps, tile.room.vertical_weights, tile.room.vertical_pitch,
                    tile.y + down);
  const uint8_t* from = turned + line * layout.source_pitch + 4 * (bands.begin() + part) - tile.row;
  uint8_t* to = between + (down + line) * layout.between_pitch + 2 * part;
  multiply_lines(
      bands, static_cast<int32_t>(warp / 2), layout.columns / 8, kThreads / gpu::kWarp / 2,
      [&](int32_t set, int32_t block, uint32_t (&bytes)[3][2]) {
        load_lines(from, layout.columns, layout.source_pitch, set, block, bytes);
      },
      [&](int32_t set, int c, const Sums& sums) {
#pragma unroll
        for (int r = 0; r < 2; ++r)
          *reinterpret_cast<uint16_t*>(to + (c * kFirstRows + 8 * r) * layout.between_pitch + 8 * set) =
              static_cast<uint16_t>(sums.pair(r));
      });
}

// The horizontal pass: each warp makes 16 columns of eight rows.
inline void across_pass(const PairStore& store, const DownTile& tile, const FirstLayout& layout, const uint8_t* between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const auto line = static_cast<int32_t>(lane / 4), part = static_cast<int32_t>(lane % 4);
  const int32_t first = tile.x + 16 * static_cast<int32_t>(warp % 2);
  if (first > tile.last_column) return;
  const Bands bands(tile.last_column, tile.room.horizontal_taps, tile.room.horizontal_weights,
                    tile.room.horizontal_pitch, first);
  const uint8_t* from = between + line * layout.between_pitch + 4 * (bands.begin() + part) - tile.column;
  uint32_t pair[3][2];
  multiply_lines(
      bands, static_cast<int32_t>(warp / 2), kFirstRows / 8, kThreads / gpu::kWarp / 2,
      [&](int32_t set, int32_t block, uint32_t (&bytes)[3][2]) {
        load_lines(from, kFirstRows, layout.between_pitch, set, block, bytes);
      },
      [&](int32_t set, int c, const Sums& sums) {
        pair[c][0] = sums.pair(0);
        pair[c][1] = sums.pair(1);
        if (c < 2) return;
        const int32_t y = tile.y + 8 * set + 2 * part;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int32_t x = first + line + 8 * r;
          if (x > tile.last_column || y > tile.last_row) continue;
          store.put_below(store.at(y, x), pair[0][r], pair[1][r], pair[2][r], y < tile.last_row);
        }
      });
}

// The tile of a block, and how its memory is laid out.
struct DownWork : TileWork {
  const DownTile tile;
  const FirstLayout layout;

  DownWork(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms)
      : TileWork(slots, slot_bytes, work),
        tile(item.tile, sampler(), reinterpret_cast<const ResampleRoom*>(rooms)[item.row]),
        layout(tile.row_end - tile.row, tile.column_end - tile.column) {}

  // Both passes, of the source as turn_source stores it.
  void resample(uint8_t* turned) const {
    uint8_t* between = turned + 3 * layout.columns * layout.source_pitch;
    down_pass(tile, layout, turned, between);
    gpu::block_barrier();
    across_pass(PairStore(tile.room, output(), tile.last_column + 1), tile, layout, between);
  }
};

// One block: a tile of a row's image.
inline void resample_down(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {
  STOKER_SHARED(FirstMemory, memory);
  const DownWork at(slots, slot_bytes, work, rooms);
  const Source& source = at.sampler().source;
  if (inside(source, (at.tile.column + at.layout.columns) / 4))
    turn_source(PackedRows<true>(source), at.tile, at.layout, memory.at);
  else
    turn_source(PackedRows<false>(source), at.tile, at.layout, memory.at);
  gpu::block_barrier();
  at.resample(memory.at);
}

}  // namespace stoker::stage

#define STOKER_RESAMPLED_DOWN                                                                                       \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, 3)                                                    \
      stoker_resampled_down(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {                   \
    stoker::stage::resample_down(slots, slot_bytes, work, rooms);                                                   \
  }
