// SPDX-License-Identifier: Apache-2.0
// Planar sources of a resampling: a group of four pixels is converted when it is loaded, once by each warp that
// multiplies it, and is never stored as pixels.
#pragma once
#include "device/planar_samples.cuh"
#include "device/resample_down.cuh"

namespace stoker::stage {

// Words of lines of samples; samples that are not in memory are not read.
struct LineWords {
  int32_t low, high;  // words with four samples, which may span two
  // Number of bits before the first sample; byte selector that repeats samples at the end of a line.
  uint32_t skip, edge;

  // Samples [x, x + 4). `repeats`: the line's last samples are repeated beyond its ends; otherwise values there are
  // arbitrary.
  LineWords(const planar::Component& c, int32_t x, bool repeats)
      : low(x >> 2), high(low + 1), skip(8 * static_cast<uint32_t>(x & 3)), edge(0x3210) {
    const int32_t first = c.first >> 2, last = c.last >> 2;
    low = jpeg::clamp_to(low, first, last);
    high = jpeg::clamp_to(high, first, last);
    if (!repeats) return;
    const int32_t last_offset = c.last - x;  // of the last sample, relative to x
    edge = last_offset >= 3 ? 0x3210 : last_offset == 2 ? 0x2210 : last_offset == 1 ? 0x1110 : 0;
    if (x < c.first) edge = last_offset >= 3 ? 0x3211 : last_offset == 2 ? 0x2211 : 0x1111;
  }
  uint32_t load(const uint8_t* line) const {
    const auto* words = reinterpret_cast<const uint32_t*>(line);
    return gpu::funnel_right(words[high], words[low], skip);
  }
};

// A thread's row of pixels, converted four at a time.
template <planar::Form kForm>
class PlanarRow {
 public:
  // Begins at pixel (x, y) of the whole image.
  PlanarRow(const planar::Image& image, int32_t x, int32_t y) : image_(image), x_(x), y_(y) {}

  // Load the channels of the four pixels of a group, counted from the first.
  void load(int32_t group, uint32_t (&channel)[3]) const {
    using planar::Form, planar::Spread;
    const int32_t x = x_ + 4 * group;
    const planar::Samples luma = samples_of(image_.component[0]);
    const LineWords at(image_.component[0], x, false);
    const uint32_t bytes = at.load(luma.line(y_));
    if constexpr (kForm == Form::Gray) {
#pragma unroll
      for (int c = 0; c < 3; ++c) channel[c] = bytes;
    } else {
      constexpr Spread kSpread = kForm == Form::None     ? Spread::None
                                 : kForm == Form::Width  ? Spread::Width
                                 : kForm == Form::Height ? Spread::Height
                                                         : Spread::Both;
      constexpr bool kHalf = kForm == Form::Width || kForm == Form::Both;
      // The same positions serve both chroma components, which have the same extents.
      const LineWords words(image_.component[1], kHalf ? (x >> 1) - 1 : x, kHalf);
      const auto load = [&](const uint8_t* line, int32_t) {
        const uint32_t four = words.load(line);
        return kHalf ? gpu::choose_bytes(four, four, words.edge) : four;
      };
      const planar::Quad cb = planar::four_samples<kSpread>(samples_of(image_.component[1]), x, y_, load);
      const planar::Quad cr = planar::four_samples<kSpread>(samples_of(image_.component[2]), x, y_, load);
      const planar::Channels rgb = planar::convert_four(bytes, cb, cr);
      channel[0] = image_.blue_first ? rgb.blue : rgb.red;
      channel[1] = rgb.green;
      channel[2] = image_.blue_first ? rgb.red : rgb.blue;
    }
  }

 private:
  const planar::Image& image_;
  const int32_t x_, y_;
};

template <planar::Form kForm>
class PlanarRows {
 public:
  static constexpr bool kAhead = false;

  explicit PlanarRows(const ResampleSlot& s) : image_(s.image), x_(image_.x0 + s.left), y_(image_.y0 + s.top) {}

  PlanarRow<kForm> at(int32_t line, int32_t group) const { return {image_, x_ + 4 * group, y_ + line}; }

 private:
  const planar::Image& image_;
  const int32_t x_, y_;
};

// Parameters of the first pass: the parts of both groups of warps, and their weights. They are in shared memory,
// because the conversion of pixels needs the registers.
struct alignas(16) FirstPassParams {
  Bands::Band bands[2][2][gpu::kWarp];  // by group of warps and block of positions
  FirstPart part[2];
};

inline void prepare_first_pass(const ResampleTile& tile, FirstPassParams& params) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, warp = gpu::thread_index() / gpu::kWarp;
  const uint32_t half = warp % 2, block = warp / 2;
  const int32_t x = tile.x + 16 * static_cast<int32_t>(half);
  if (block >= 2) return;
  if (x >= tile.x_end) {
    params.part[half] = {tile.row, tile.row, 0, 0};
    return;
  }
  const Bands bands = first_bands(tile, x);
  if (block == 0 && lane == 0) params.part[half] = {tile.row, tile.row_end, bands.begin(), bands.groups()};
  if (block == 0 || bands.groups() > 8) bands.load(static_cast<int32_t>(block), params.bands[half][block][lane]);
}

template <planar::Form kForm>
inline void first_planar_pass(const ResampleSlot& s, const FirstPassParams& params, Between& between) {
  const uint32_t lane = gpu::thread_index() % gpu::kWarp, half = gpu::thread_index() / gpu::kWarp % 2;
  params.part[half].run(PlanarRows<kForm>(s), between,
                        [&](bool two, int32_t set, int32_t sets, int32_t step, auto&& load, auto&& take) {
                          multiply_sets(
                              two, set, sets, step,
                              [&](Bands::Band& first, Bands::Band& second) {
                                gpu::warp_barrier();  // keeps the compiler from reading the weights before the loop
                                first = params.bands[half][0][lane];
                                if (two) second = params.bands[half][1][lane];
                              },
                              load, take);
                        });
}

inline void first_planar_pass(const ResampleSlot& s, const FirstPassParams& params, Between& between) {
  using planar::Form;
  switch (s.image.form) {  // the same for all threads of a block
    case Form::Gray: return first_planar_pass<Form::Gray>(s, params, between);
    case Form::None: return first_planar_pass<Form::None>(s, params, between);
    case Form::Width: return first_planar_pass<Form::Width>(s, params, between);
    case Form::Height: return first_planar_pass<Form::Height>(s, params, between);
    default: return first_planar_pass<Form::Both>(s, params, between);
  }
}

// Compute one tile of a row's image. Nothing is kept in registers between the passes.
inline void resample_planar_tile(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  STOKER_SHARED(Between, between);
  STOKER_SHARED(FirstPassParams, params);
  prepare_first_pass(TileWork(slots, slot_bytes, work).tile(scratches), params);
  gpu::block_barrier();
  first_planar_pass(TileWork(slots, slot_bytes, work).interpolator(), params, between);
  gpu::block_barrier();
  const TileWork again(slots, slot_bytes, work);
  second_pass(again, scratches, again.tile(scratches), between);
}

template <planar::Form kForm>
STOKER_CALLED void down_planar_pass(const ResampleSlot& s, const DownPassParams& params, Between& between) {
  down_pass(PlanarRows<kForm>(s), params, between);
}

// Compute one tile of a row's image, with the vertical pass first.
inline void resample_planar_down(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  STOKER_SHARED(Between, between);
  STOKER_SHARED(DownPassParams, params);
  using planar::Form;
  prepare_down_pass(TileWork(slots, slot_bytes, work), scratches, params);
  gpu::block_barrier();
  const ResampleSlot& s = TileWork(slots, slot_bytes, work).interpolator();
  switch (s.image.form) {
    case Form::Gray: down_planar_pass<Form::Gray>(s, params, between); break;
    case Form::None: down_planar_pass<Form::None>(s, params, between); break;
    case Form::Width: down_planar_pass<Form::Width>(s, params, between); break;
    case Form::Height: down_planar_pass<Form::Height>(s, params, between); break;
    default: down_planar_pass<Form::Both>(s, params, between);
  }
  gpu::block_barrier();
  across_pass(TileWork(slots, slot_bytes, work), scratches, between);
}

}  // namespace stoker::stage

#define STOKER_RESAMPLED_PLANAR \
  STOKER_INTERPOLATOR_KERNEL(stoker_resampled_planar, stoker::stage::resample_planar_tile, 3)
// From compute capability 10.0 on, 80 registers are not enough.
#define STOKER_RESAMPLED_DOWN_PLANAR                                                            \
  STOKER_INTERPOLATOR_KERNEL(stoker_resampled_down_planar, stoker::stage::resample_planar_down, \
                             __CUDA_ARCH__ >= 1000 ? 2 : 3)
