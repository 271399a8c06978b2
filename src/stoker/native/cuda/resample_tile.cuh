// SPDX-License-Identifier: Apache-2.0
// Both passes of a resampling of 8-bit RGB images in one kernel: the image between them stays in shared memory.
//
// A weighted sum of bytes with weights of 22 bits and a sign is a product of matrices of bytes: the weights' three
// bytes, of which the highest has the sign, give three products, which are put together as whole numbers. So the sums
// are exact, and the matrix units make them: 16 outputs by 8 lines from 32 positions at once (mma.m16n8k32). Its operands lie
// in a warp's registers as follows, with g = lane / 4 and t = lane % 4:
//   weights    rows g and g + 8 (outputs), columns 4t + [0, 4) and 16 + 4t + [0, 4) (positions)
//   bytes      rows 4t + [0, 4) and 16 + 4t + [0, 4) (positions), column g (lines)
//   products   rows g and g + 8, columns 2t and 2t + 1
// In the first pass outputs are columns, and lines the source's rows, so that positions are neighbouring pixels, which are
// loaded as they lie; products are stored with the source's rows side by side. In the second pass outputs are rows, and
// lines columns; positions are those rows. Where no weight is, zeros are multiplied with whatever is there.
#pragma once
#include "device.cuh"
#include "stage_sample.cuh"
#include "stage_slot.hpp"

namespace stoker::stage {

// Between the passes: column by column, or row by row where the vertical pass is first.
struct alignas(16) Between {
  uint8_t at[3][kTileLines][kTilePositions];
};

// The words of a group if it is wanted, else zeros: one by one, since what is loaded together must be in registers side by
// side, and a product wants others to be so; it would be copied every time.
inline void load_group(bool wanted, const WeightGroup* from, uint32_t& low, uint32_t& middle, uint32_t& high) {
  low = middle = high = 0;
#if defined(__CUDA_ARCH__)
  asm("{ .reg .pred p; setp.ne.u32 p, %4, 0;\n"
      " @p ld.global.nc.u32 %0, [%3]; @p ld.global.nc.u32 %1, [%3 + 4]; @p ld.global.nc.u32 %2, [%3 + 8]; }"
      : "+r"(low), "+r"(middle), "+r"(high)
      : "l"(from), "r"(static_cast<uint32_t>(wanted)));
#else
  if (wanted) low = from->low, middle = from->middle, high = from->high;
#endif
}

// A thread's part of the weights of 16 outputs.
class Bands {
 public:
  struct Band {
    uint32_t low[4], middle[4], high[4];
  };

  // Of the axis whose last output is `last`.
  Bands(int32_t last_output, uint64_t taps_at, uint64_t weights_at, int64_t pitch, int32_t output)
      : pitch_(static_cast<uint32_t>(pitch)) {
    const auto* taps = array_at<resample::Taps>(taps_at);
    const auto last = static_cast<uint32_t>(last_output), first = static_cast<uint32_t>(output);
    const resample::Taps a = taps[first], b = taps[first + 15 < last ? first + 15 : last];
    begin_ = (a.start < b.start ? a.start : b.start) >> 2;  // one of them if the axis is mirrored
    const int32_t end = a.start + a.count > b.start + b.count ? a.start + a.count : b.start + b.count;
    groups_ = ((end + 3) >> 2) - begin_;
    const uint32_t lane = gpu::thread_index() % gpu::kWarp;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t o = first + lane / 4 + 8 * r;
      const resample::Taps t = taps[o < last ? o : last];
      start_[r] = (t.start >> 2) - static_cast<int32_t>(lane % 4);
      count_[r] = o <= last && t.count > 0 ? static_cast<uint32_t>((t.start + t.count + 3) >> 2) - (t.start >> 2) : 0;
      weights_[r] = array_at<WeightGroup>(weights_at) + (o < last ? o : last) * pitch_;
    }
  }
  int32_t begin() const { return begin_; }    // the first group of four positions that has a weight
  int32_t groups() const { return groups_; }  // up to the last one

  // Positions [32 block, 32 block + 32) from begin() on.
  void load(int32_t block, Band& band) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i % 2;
      const auto group = static_cast<uint32_t>(begin_ + 8 * block + 4 * (i / 2) - start_[r]);
      load_group(group < count_[r], weights_[r] + group, band.low[i], band.middle[i], band.high[i]);
    }
  }

 private:
  uint32_t pitch_, count_[2];
  int32_t begin_, groups_, start_[2];
  const WeightGroup* weights_[2];
};

// Weighted sums of one channel: two outputs of each of the thread's two rows.
struct Sums {
  uint32_t value[4];

  // Over one or two blocks of positions.
  void add(const Bands::Band& w, const uint32_t (&bytes)[2], bool more, const Bands::Band& w2,
           const uint32_t (&bytes2)[2]) {
    int32_t low[4] = {}, middle[4] = {}, high[4] = {kHalf, kHalf, kHalf, kHalf};
    gpu::multiply_bytes<false>(low, w.low, bytes);
    gpu::multiply_bytes<false>(middle, w.middle, bytes);
    gpu::multiply_bytes<true>(high, w.high, bytes);
    if (more) {
      gpu::multiply_bytes<false>(low, w2.low, bytes2);
      gpu::multiply_bytes<false>(middle, w2.middle, bytes2);
      gpu::multiply_bytes<true>(high, w2.high, bytes2);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      value[i] = (static_cast<uint32_t>(high[i]) << 16) + (static_cast<uint32_t>(middle[i]) << 8) +
                 static_cast<uint32_t>(low[i]) + (resample::kFixedHalf - (static_cast<uint32_t>(kHalf) << 16));
  }
  // Both outputs of row g + 8 r as bytes.
  uint32_t pair(int r) const { return gpu::saturated_pair(pixel(2 * r), pixel(2 * r + 1)); }
  int32_t pixel(int i) const { return static_cast<int32_t>(value[i]) >> resample::kWeightBits; }

 private:

  // What the highest bytes' products begin with, so that a half need not be added to each sum. It takes four registers,
  // which there are on 9.x alone, and not where a kernel's source takes them.
#if defined(STOKER_REGISTERS_TAKEN) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 100 != 9)
  static constexpr int32_t kHalf = 0;
#else
  static constexpr int32_t kHalf = resample::kFixedHalf >> 16;
#endif
};

// A thread's row of the source, whose pixels are loaded four at a time as the words that they lie in. kInside: none of the
// groups that are loaded, nor the word behind, is beyond the row's last word. A row has four words at least.
template <bool kInside>
class SourceRow {
 public:
  // `group`: the first four pixels; `width`: of the image, in pixels, behind which no word is read.
  SourceRow(const uint8_t* row, int32_t group, int32_t width) {
    const auto address = reinterpret_cast<uintptr_t>(row);
    words_ = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3}) + 3 * group;
    skip_ = 8 * static_cast<uint32_t>(address & 3);
    last_ = (static_cast<int32_t>(address & 3) + 3 * width - 1) / 4 - 3 * group - 3;
  }

  // The first word of a group, counted from the first one.
  uint32_t begin(int32_t group) const { return load_word(words_ + place(group)); }

  // The channels of the four pixels of a group, of which the first word is there.
  void load(int32_t group, uint32_t first, uint32_t (&channel)[3]) const {
    const int32_t wanted = 3 * group, at = place(group);
    uint32_t word[4] = {first}, bytes[3];
#pragma unroll
    for (int i = 1; i < 4; ++i) word[i] = load_word(words_ + at + i);
    if constexpr (!kInside) {  // what is behind the last word has no weight, whatever it is
      if ((wanted - at) & 1) word[0] = word[1], word[1] = word[2], word[2] = word[3];
      if ((wanted - at) & 2) word[0] = word[2], word[1] = word[3];
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) bytes[i] = gpu::funnel_right(word[i + 1], word[i], skip_);
    channel[0] = gpu::choose_bytes(gpu::choose_bytes(bytes[0], bytes[1], 0x0630), bytes[2], 0x5210);
    channel[1] = gpu::choose_bytes(gpu::choose_bytes(bytes[0], bytes[1], 0x0741), bytes[2], 0x6210);
    channel[2] = gpu::choose_bytes(gpu::choose_bytes(bytes[0], bytes[1], 0x0052), bytes[2], 0x7410);
  }
  void load(int32_t group, uint32_t (&channel)[3]) const { load(group, begin(group), channel); }

 private:
  int32_t place(int32_t group) const { return kInside || 3 * group < last_ ? 3 * group : last_; }

  const uint32_t* words_;
  int32_t last_;
  uint32_t skip_;
};

// A source of packed pixels. Others have the same function `at`, for lines of which `load` makes four pixels' channels
// (resample_planar.cuh). kAhead: of a group, the first word can be loaded before the rest.
template <bool kInside>
class PackedRows {
 public:
  // Where edges are looked for, there are no registers for words ahead.
  static constexpr bool kAhead = kInside;

  explicit PackedRows(const Source& s)
      : data_(array_at<uint8_t>(s.data)), row_(static_cast<int32_t>(s.row)), width_(static_cast<int32_t>(s.width)) {}
  // A line, whose groups are counted from `group`.
  SourceRow<kInside> at(int32_t line, int32_t group) const {
    return {data_ + int64_t{line} * row_, group, width_};
  }

 private:
  const uint8_t* data_;
  int32_t row_, width_;
};

// Whether no group before `end` needs an edge to be looked for.
inline bool inside(const Source& s, int32_t end) { return 3 * end <= (3 * static_cast<int32_t>(s.width) - 1) / 4; }

// A warp's weighted sums over sets of eight lines, numbered from `set` up to `sets` by `step`: load(set, block, bytes) gives
// the lines' channels at a block's positions, and take(set, c, sums) gets a channel's sums. `weights(first, second)` gives
// the weights of one block or two, for each set anew; registers are a matter of what it does.
template <class Weights, class Load, class Take>
inline void multiply_sets(bool two, int32_t set, int32_t sets, int32_t step, Weights&& weights, Load&& load, Take&& take) {
  for (; set < sets; set += step) {
    uint32_t near[3][2], far[3][2];
    load(set, 0, near);
    if (two) load(set, 1, far);
    Bands::Band first, second;
    weights(first, second);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      Sums sums;
      sums.add(first, near[c], two, second, far[c]);
      take(set, c, sums);
    }
  }
}

// The same with the weights in registers.
template <class Load, class Take>
inline void multiply_lines(const Bands& bands, int32_t set, int32_t sets, int32_t step, Load&& load, Take&& take) {
  const bool two = bands.groups() > 8;
  Bands::Band first, second;
  bands.load(0, first);
  if (two) bands.load(1, second);
  multiply_sets(
      two, set, sets, step, [&](Bands::Band& a, Bands::Band& b) { a = first, b = second; }, load, take);
}

// Where the tile of a block is: kTileLines columns from `x` on, rows [y, y_end), of source rows [row, row_end).
struct TileBounds {
  int32_t x, x_end, y, y_end;  // x_end: of the image
  int32_t row, row_end;
  int32_t last_column, last_row;
};

// The tile of a block, and what is read of its row's description, once, since the compiler must take it that stores might
// change it.
struct ResampleTile : TileBounds {
  const ResampleRoom room;

  ResampleTile(uint32_t tile, const ResampleSlot& s, const ResampleRoom& at) : TileBounds{}, room(at) {
    x_end = static_cast<int32_t>(s.horizontal.out);
    last_column = x_end - 1;
    last_row = static_cast<int32_t>(s.vertical.out) - 1;
    const uint32_t across = (static_cast<uint32_t>(x_end) + kTileLines - 1) / kTileLines, down = tile / across;
    x = static_cast<int32_t>(tile - down * across) * kTileLines;
    const auto rows = static_cast<int32_t>(room.tile_rows);
    y = static_cast<int32_t>(down) * rows;
    y_end = y + rows <= last_row ? y + rows : last_row + 1;
    const auto* taps = array_at<resample::Taps>(room.vertical_taps);
    const resample::Taps a = taps[y], b = taps[y_end - 1];
    row = (a.start < b.start ? a.start : b.start) & ~3;
    row_end = a.start + a.count > b.start + b.count ? a.start + a.count : b.start + b.count;
    if (row_end <= row) row_end = row + 1;
  }
};

// A warp's part of the first pass, of source rows [row, row_end): two groups of warps, one for each 16 columns, whose
// positions begin with group `begin`.
struct FirstPart {
  int32_t row, row_end, begin, groups;

  int32_t end() const { return begin + (groups > 8 ? 16 : 8); }  // of the groups that are loaded

  // `multiply(two, set, sets, step, load, take)`: as multiply_sets.
  template <class Rows, class Multiply>
  void run(const Rows& rows, Between& between, Multiply&& multiply) const {
    const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
    constexpr int32_t kStep = kThreads / gpu::kWarp / 2;
    const auto line_of = [&](int32_t set) {
      const int32_t wanted = row + 8 * set + static_cast<int32_t>(lane / 4);
      return rows.at(wanted < row_end ? wanted : row_end - 1, begin + static_cast<int32_t>(lane % 4));
    };
    // The first words of a set are loaded while the set before is made: they bring what is beside them into the cache.
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

// The bands of a warp's 16 columns from `x` on.
inline Bands first_bands(const ResampleTile& tile, int32_t x) {
  return {tile.last_column, tile.room.horizontal_taps, tile.room.horizontal_weights, tile.room.horizontal_pitch, x};
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

// Two pixels of two reds, two greens and two blues.
inline PixelPair pair_of(uint32_t red, uint32_t green, uint32_t blue) {
  const uint32_t both = gpu::choose_bytes(red, green, 0x5140);
  return {gpu::choose_bytes(both, blue, 0x6410), gpu::choose_bytes(both, blue, 0x6532)};
}

// Where pairs of neighbours of resampled rows go: to an image of four bytes to a pixel, or to the stage's output, where
// that is all that the stage does.
class PairStore {
 public:
  PairStore(const ResampleRoom& room, const Port& output, int32_t width) {
    if (!room.direct) {
      pixel_ = 4;
      row_ = 4 * ((int64_t{width} + 1) & ~int64_t{1});
      to_ = reinterpret_cast<uint8_t*>(room.between);
      form_ = Form::Words;
      return;
    }
    pixel_ = output.stride[0];
    row_ = output.stride[1];
    channel_ = output.channel;
    to_ = reinterpret_cast<uint8_t*>(output.data);
    const bool even = ((reinterpret_cast<uintptr_t>(to_) | static_cast<uint64_t>(row_)) & 1) == 0;
    form_ = pixel_ == 3 && channel_ == 1 && even ? Form::Packed : Form::Any;
  }
  uint8_t* at(int64_t y, int64_t x) const { return to_ + y * row_ + x * pixel_; }
  int64_t row() const { return row_; }
  int64_t pixel() const { return pixel_; }

  // Red, green and blue of two pixels, of which the second may not be there.
  void put(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool second) const {
    const PixelPair pair = pair_of(red, green, blue);
    if (form_ == Form::Words) {
      *reinterpret_cast<PixelPair*>(to) = pair;
    } else if (form_ == Form::Packed && second) {
      auto* halves = reinterpret_cast<uint16_t*>(to);
      halves[0] = static_cast<uint16_t>(pair.first);
      halves[1] = static_cast<uint16_t>(gpu::choose_bytes(pair.first, pair.second, 0x4442));
      halves[2] = static_cast<uint16_t>(pair.second >> 8);
    } else {
      put_pixel(to, pair.first);
      if (second) put_pixel(to + pixel_, pair.second);
    }
  }
  // The same of two pixels of which the second is below the first.
  void put_below(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool second) const {
    const PixelPair pair = pair_of(red, green, blue);
    if (form_ == Form::Words) {
      *reinterpret_cast<uint32_t*>(to) = pair.first;
      if (second) *reinterpret_cast<uint32_t*>(to + row_) = pair.second;
    } else {
      put_pixel(to, pair.first);
      if (second) put_pixel(to + row_, pair.second);
    }
  }

 private:
  enum class Form : uint8_t { Words, Packed, Any };
  void put_pixel(uint8_t* to, uint32_t pixel) const {
#pragma unroll
    for (int c = 0; c < 3; ++c) to[c * channel_] = static_cast<uint8_t>(pixel >> (8 * c));
  }

  Form form_;
  int64_t pixel_, row_, channel_ = 1;
  uint8_t* to_;
};

// The same where they are known to go to an image of four bytes to a pixel.
class WordStore {
 public:
  WordStore(const ResampleRoom& room, int32_t width)
      : row_(4 * ((width + 1) & ~1)), to_(reinterpret_cast<uint8_t*>(room.between)) {}
  uint8_t* at(int64_t y, int32_t x) const { return to_ + y * row_ + 4 * x; }
  int32_t row() const { return row_; }
  int32_t pixel() const { return 4; }
  void put(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool) const {
    *reinterpret_cast<PixelPair*>(to) = pair_of(red, green, blue);
  }
  void put_below(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool second) const {
    const PixelPair pair = pair_of(red, green, blue);
    *reinterpret_cast<uint32_t*>(to) = pair.first;
    if (second) *reinterpret_cast<uint32_t*>(to + row_) = pair.second;
  }

 private:
  const int32_t row_;
  uint8_t* const to_;
};

// Those of a set of eight lines at a block's positions; `from`: the thread's line of the first set, and its first position.
inline void load_lines(const uint8_t* from, int32_t set, int32_t block, uint32_t (&bytes)[3][2]) {
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const auto* words =
        reinterpret_cast<const uint32_t*>(from + (c * kTileLines + 8 * set) * kTilePositions + 32 * block);
    bytes[c][0] = words[0];
    bytes[c][1] = words[4];
  }
}

// Each warp makes 16 rows at a time.
template <class Store>
inline void second_pass(const Store& store, const TileBounds& tile, const ResampleRoom& room, const Between& between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const int32_t x = tile.x + static_cast<int32_t>(2 * (lane % 4));
  const int32_t sets = tile.x_end - tile.x < kTileLines ? (tile.x_end - tile.x + 7) / 8 : kTileLines / 8;
  for (int32_t y = tile.y + 16 * static_cast<int32_t>(warp); y < tile.y_end; y += 16 * (kThreads / gpu::kWarp)) {
    const Bands bands(tile.last_row, room.vertical_taps, room.vertical_weights, room.vertical_pitch, y);
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

// A number of which the compiler does not know what follows from it has been computed, or read, before, so that nothing is held
// in registers.
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

// A block's row, where its description is, and its tile.
struct TileWork {
  const Work& item;
  const uint8_t* slot;

  TileWork(uint64_t slots, uint64_t slot_bytes, uint64_t work)
      : item(reinterpret_cast<const Work*>(work)[gpu::block_index()]),
        slot(reinterpret_cast<const uint8_t*>(slots) + item.row * slot_bytes + sizeof(Slot)) {}
  const ResampleSlot& sampler() const { return *reinterpret_cast<const ResampleSlot*>(slot); }
  const Port& output() const { return *reinterpret_cast<const Port*>(slot + sizeof(ResampleSlot) + sizeof(Port)); }
  const ResampleRoom& room(uint64_t rooms) const { return reinterpret_cast<const ResampleRoom*>(rooms)[item.row]; }
  ResampleTile tile(uint64_t rooms) const { return {item.tile, sampler(), room(rooms)}; }
};

inline void second_pass(const TileWork& at, uint64_t rooms, const TileBounds& tile, const Between& between) {
  const ResampleRoom& room = at.room(forgotten(rooms));
  if (room.direct) second_pass(PairStore(room, at.output(), tile.x_end), tile, room, between);
  else second_pass(WordStore(room, tile.x_end), tile, room, between);
}

// One block: a tile of a row's image.
inline void resample_tile(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {
  STOKER_SHARED(Between, between);
  const TileWork at(slots, slot_bytes, work);
  const ResampleTile tile = at.tile(rooms);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 1000  // there its registers would be spilled
  STOKER_SHARED(TileBounds, bounds);
  if (gpu::thread_index() == 0) bounds = tile;
#else
  const TileBounds& bounds = tile;
#endif
  first_pass(at.sampler().source, tile, between);
  gpu::block_barrier();
  second_pass(TileWork(slots, slot_bytes, work), rooms, bounds, between);  // not held in between
}

}  // namespace stoker::stage

#define STOKER_RESAMPLED                                                                                            \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, 3)                                                    \
      stoker_resampled(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {                        \
    stoker::stage::resample_tile(slots, slot_bytes, work, rooms);                                                   \
  }
