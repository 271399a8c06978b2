// SPDX-License-Identifier: Apache-2.0
// Both passes of a resampling in one kernel (see device/resample_tile.cuh), with the vertical pass first. Positions of
// the first pass are then source rows, which are not adjacent in memory: a thread loads four pixels of two rows at a
// time, and exchanges them with a neighbouring thread for two pixels of four rows. Lines of the first pass are columns,
// of which a warp computes 16 at a time: line g of its product i is column 2 g + i.
#pragma once
#define STOKER_REGISTERS_TAKEN  // by the exchange of pixels
#include "device/resample_tile.cuh"

namespace stoker::stage {

// Tile of a block like ResampleTile, and the source columns that it needs.
struct DownTile {
  const ResampleScratch scratch;
  int32_t x, x_end, y, last_column, last_row;  // x_end: end of the tile
  int32_t row_end, column, column_end;         // in the source

  DownTile(uint32_t tile, const ResampleSlot& s, const ResampleScratch& at)
      : scratch(at),
        last_column(static_cast<int32_t>(s.horizontal.out) - 1),
        last_row(static_cast<int32_t>(s.vertical.out) - 1) {
    const auto columns = static_cast<uint32_t>(scratch.tile_columns);
    const uint32_t across = (static_cast<uint32_t>(last_column) + columns) / columns, down = tile / across;
    x = static_cast<int32_t>((tile - down * across) * columns);
    x_end = x + static_cast<int32_t>(columns) <= last_column ? x + static_cast<int32_t>(columns) : last_column + 1;
    y = static_cast<int32_t>(down) * kTileLines;
    int32_t row;
    under(scratch.vertical_taps, y, y + kTileLines - 1 < last_row ? y + kTileLines - 1 : last_row, row, row_end);
    under(scratch.horizontal_taps, x, x_end - 1, column, column_end);
  }

 private:
  // Find the positions of outputs `first` to `last`, from a multiple of four on.
  static void under(uint64_t taps_at, int32_t first, int32_t last, int32_t& begin, int32_t& end) {
    const auto* taps = array_at<resample::Taps>(taps_at);
    const resample::Taps a = taps[first], b = taps[last];
    begin = (a.start < b.start ? a.start : b.start) & ~3;
    end = a.start + a.count > b.start + b.count ? a.start + a.count : b.start + b.count;
    if (end <= begin) end = begin + 1;
  }
};

// Exchange between a thread and its neighbour (whose lane differs by 4) that turns two rows of four pixels each into
// four rows of two pixels.
class PairTranspose {
 public:
  // The second of the two threads: it loads the last two rows and keeps the last two pixels.
  explicit PairTranspose(bool second) : keep_(second ? kLast : kFirst), pixel_(second ? 0x1054 : 0x5410) {}

  // For one channel: returns four rows of the first pixel, and four of the second.
  void operator()(uint32_t row, uint32_t next_row, uint32_t& pixel, uint32_t& next_pixel) const {
    const uint32_t kept = gpu::choose_bytes(row, next_row, keep_);
    const uint32_t got = gpu::shuffle_across(gpu::choose_bytes(row, next_row, kFirst + kLast - keep_), 4);
    pixel = gpu::choose_bytes(kept, got, pixel_);
    next_pixel = gpu::choose_bytes(kept, got, pixel_ + 0x2222);
  }

 private:
  static constexpr uint32_t kFirst = 0x5140, kLast = 0x7362;  // byte selectors for two pixels of both rows
  const uint32_t keep_, pixel_;
};

// Parameters of the vertical pass: the weights of both groups of warps. They are in shared memory, because the exchange
// needs the registers.
struct alignas(16) DownPassParams {
  Bands::Band band[2][2][gpu::kWarp];  // by group of warps and block of positions
  int32_t begin[2], groups[2];         // as in Bands; no groups: there is nothing to do
  // In the source: the first group of columns, the number of sets of 16 columns, and the last row.
  int32_t left, sets, last;
};

inline void prepare_down_pass(const TileWork& at, uint64_t scratches, DownPassParams& params) {
  const DownTile tile(at.work.number, at.interpolator(), at.scratch(scratches));
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const uint32_t half = warp % 2, block = warp / 2;
  if (gpu::thread_index() == 0)
    params.left = tile.column / 4, params.sets = (tile.column_end - tile.column + 15) / 16,
    params.last = tile.row_end - 1;
  if (block >= 2) return;
  const int32_t y = tile.y + 16 * static_cast<int32_t>(half);
  if (y > tile.last_row) {
    params.groups[half] = 0;
    return;
  }
  const Bands bands(tile.last_row, tile.scratch.vertical_taps, tile.scratch.vertical_weights,
                    tile.scratch.vertical_pitch, y);
  if (block == 0 && lane == 0) params.begin[half] = bands.begin(), params.groups[half] = bands.groups();
  if (block == 0 || bands.groups() > 8) bands.load(static_cast<int32_t>(block), params.band[half][block][lane]);
}

// The vertical pass: two groups of warps, one for each 16 rows.
template <class Rows>
inline void down_pass(const Rows& rows, const DownPassParams& params, Between& between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp, half = warp % 2;
  const auto line = static_cast<int32_t>(lane / 4), part = static_cast<int32_t>(lane % 4);
  const int32_t groups = params.groups[half];
  if (groups == 0) return;
  const PairTranspose turn(line % 2);
  uint8_t* to = &between.at[0][16 * half + static_cast<uint32_t>(line)][4 * part];
#pragma unroll 1
  for (auto set = static_cast<int32_t>(warp / 2); set < params.sets; set += kThreads / gpu::kWarp / 2) {
    // Forgotten, or the compiler would keep all rows' addresses in registers.
    const int32_t top = forgotten(4 * (params.begin[half] + part) + line % 2 * 2);
    const int32_t group = params.left + 4 * set + line / 2, last = params.last;
    uint32_t bytes[4][2][3];  // 16 positions each
#pragma unroll
    for (int h = 0; h < 4; ++h) {
      if (h > 0 && 4 * h >= groups) continue;
      uint32_t channel[2][3];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int32_t wanted = top + 16 * h + i;
        rows.at(wanted < last ? wanted : last, group).load(0, channel[i]);
      }
#pragma unroll
      for (int c = 0; c < 3; ++c) turn(channel[0][c], channel[1][c], bytes[h][0][c], bytes[h][1][c]);
    }
    gpu::warp_barrier();  // keeps the compiler from reading the weights before the loop
    const Bands::Band first = params.band[half][0][lane], second = params.band[half][1][lane];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      Sums sums[2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        sums[i].add(first, {bytes[0][i][c], bytes[1][i][c]}, groups > 8, second, {bytes[2][i][c], bytes[3][i][c]});
#pragma unroll
      for (int r = 0; r < 2; ++r)  // columns 4 part to 4 part + 3
        *reinterpret_cast<uint32_t*>(to + (c * kTileLines + 8 * r) * kTilePositions + 16 * set) = gpu::saturated_four(
            sums[0].pixel(2 * r), sums[1].pixel(2 * r), sums[0].pixel(2 * r + 1), sums[1].pixel(2 * r + 1));
    }
  }
}

// From compute capability 10.0 on, both passes of packed pixels are calls, since registers would spill otherwise.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define STOKER_DOWN_PASS STOKER_CALLED
#else
#define STOKER_DOWN_PASS inline
#endif
// The vertical pass of packed pixels.
template <bool kInside>
STOKER_DOWN_PASS void packed_down_pass(const Source& source, const DownPassParams& params, Between& between) {
  down_pass(PackedRows<kInside>(source), params, between);
}

// The horizontal pass: each warp computes 16 columns at a time.
template <class Store>
inline void across_pass(const Store& store, const DownTile& tile, const Between& between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const auto line = static_cast<int32_t>(lane / 4), part = static_cast<int32_t>(lane % 4);
  const int32_t rows = tile.last_row + 1 - tile.y, sets = rows < kTileLines ? (rows + 7) / 8 : kTileLines / 8;
  const int32_t y = tile.y + 2 * part;
  for (int32_t x = tile.x + 16 * static_cast<int32_t>(warp); x < tile.x_end; x += 16 * (kThreads / gpu::kWarp)) {
    const Bands bands(tile.last_column, tile.scratch.horizontal_taps, tile.scratch.horizontal_weights,
                      tile.scratch.horizontal_pitch, x);
    const uint8_t* from = &between.at[0][line][4 * (bands.begin() + part) - tile.column];
    uint8_t* to = store.at(y, x + line);
    uint32_t pair[3][2];
    multiply_lines(
        bands, 0, sets, 1,
        [&](int32_t set, int32_t block, uint32_t (&bytes)[3][2]) { load_lines(from, set, block, bytes); },
        [&](int32_t set, int c, const Sums& sums) {
          pair[c][0] = sums.pair(0);
          pair[c][1] = sums.pair(1);
          if (c < 2 || y + 8 * set > tile.last_row) return;
          uint8_t* here = to + 8 * set * store.row();
#pragma unroll
          for (int r = 0; r < 2; ++r)
            if (x + line + 8 * r < tile.x_end)
              store.put_below(here + 8 * r * store.pixel(), pair[0][r], pair[1][r], pair[2][r],
                              y + 8 * set < tile.last_row);
        });
  }
}

// The part after the first pass. It recomputes its parameters, so that they need no registers during the first pass.
STOKER_DOWN_PASS void across_pass(const TileWork& at, uint64_t scratches, const Between& between) {
  const DownTile tile(at.work.number, at.interpolator(), at.scratch(forgotten(scratches)));
  if (tile.scratch.direct) across_pass(PairStore(tile.scratch, at.output(), tile.last_column + 1), tile, between);
  else across_pass(WordStore(tile.scratch, tile.last_column + 1), tile, between);
}

// Compute one tile of a row's image. Nothing is kept in registers between the passes.
inline void resample_down(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  STOKER_SHARED(Between, between);
  STOKER_SHARED(DownPassParams, params);
  prepare_down_pass(TileWork(slots, slot_bytes, work), scratches, params);
  gpu::block_barrier();
  const Source& source = TileWork(slots, slot_bytes, work).interpolator().source;
  if (inside(source, params.left + 4 * params.sets)) packed_down_pass<true>(source, params, between);
  else packed_down_pass<false>(source, params, between);
  gpu::block_barrier();
  across_pass(TileWork(slots, slot_bytes, work), scratches, between);
}

}  // namespace stoker::stage

#define STOKER_RESAMPLED_DOWN STOKER_INTERPOLATOR_KERNEL(stoker_resampled_down, stoker::stage::resample_down, 3)
