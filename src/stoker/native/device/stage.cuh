// SPDX-License-Identifier: Apache-2.0
// Framework of every generated stage: lanes, the interpolator, the program.
#pragma once
#include "device/row_blocks.cuh"
#include "device/stage_group.cuh"
#include "device/stage_lane.cuh"
#include "device/stage_moves.cuh"
#include "device/stage_sample.cuh"
#include "device/stage_warp.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Compute a part of the lanes of a row without an interpolator, by one block.
template <class Program>
inline void run_lanes(const Row<Program>& row, const Part& part, bool& fault) {
  const auto lanes = static_cast<uint64_t>(row.slot().lanes), each = static_cast<uint64_t>(part.lanes);
  const uint64_t begin = part.number * each, end = begin + each < lanes ? begin + each : lanes;
  // Where a thread also computes groups, 80 registers hold all strides of two ports.
  const HeldPorts<Program, (Program::kGroup > 1 && Program::kPorts > 2) ? 1 : 3> held(row);
  const typename Program::Numbers numbers(row);
  Lane<Program> lane;
  lane.channel = held.channel;
  for (uint64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
    if (lanes <= 0xFFFFFFFFull) locate(row, held, static_cast<uint32_t>(i), lane);
    else locate(row, held, i, lane);
    run_inner(row, held, numbers, lane, fault);
  }
}

// Compute lanes in groups where that pays, or one by one.
template <class Program>
inline void run_unsampled(const Row<Program>& row, const Part& part, bool& fault) {
  if constexpr (Program::kMoves) {
    run_moves(row, part);
  } else {
    if constexpr (Program::kGroup > 1) {
      if (row.slot().inner == 1) {
        if constexpr (Program::kWide > 1) {
          if (run_contiguous<WideGroups<Program>>(row, part, fault)) return;
        } else {
          if (run_contiguous<Groups<Program>>(row, part, fault)) return;
        }
        if (run_groups<Groups<Program>>(row, part, fault)) return;
      } else if (row.slot().inner == kPixel) {
        if constexpr (Program::kPixelsTogether > 0) {
          if constexpr (Program::kShared > 0) {
            if (has_same_coordinates(row) && run_groups<PixelGroups<Program, true>>(row, part, fault)) return;
          }
          if (run_groups<PixelGroups<Program>>(row, part, fault)) return;
        }
      } else if constexpr (Program::kPointsTogether > 0) {
        if (run_groups<PointGroups<Program>>(row, part, fault)) return;
      }
    }
    run_lanes(row, part, fault);
  }
}

// Compute one sampled pixel: N channels from c on, which a flat program takes one by one. `at` has the addresses of its
// channel 0.
template <int N, class Program>
inline void run_channels(const HeldPorts<Program>& held, const typename Program::Numbers& numbers,
                         const typename Program::Interpolator::Reader& reader, int64_t y, int64_t x, int64_t c,
                         uint8_t* const (&at)[Program::kPorts], Lane<Program>& lane, bool& fault) {
  typename Program::Interpolator::Type value[N];
  reader.template sample<N>(y, x, reader.single ? 0 : c, value);
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p) lane.at[p] = at[p] + c * held.channel[p];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    lane.sampled.value[0] = value[k];
    Program::run(lane, numbers, fault);
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p) lane.at[p] += held.channel[p];
  }
}

template <class Program>
inline void run_pixel(const typename Program::Numbers& numbers, const typename Program::Interpolator::Reader& reader,
                      int64_t y, int64_t x, uint8_t* const (&at)[Program::kPorts], Lane<Program>& lane, bool& fault) {
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p) lane.at[p] = at[p];
  typename Program::Interpolator::Type value[Program::kSampled];
  if (Program::kSampled > 1 && reader.single) {  // one channel is broadcast to all
    reader.template sample<1>(y, x, 0, value);
#pragma unroll
    for (int c = 1; c < Program::kSampled; ++c) value[c] = value[0];
  } else {
    reader.template sample<Program::kSampled>(y, x, 0, value);
  }
#pragma unroll
  for (int c = 0; c < Program::kSampled; ++c) lane.sampled.value[c] = value[c];
  Program::run(lane, numbers, fault);
}

// Compute the rows of a thread's column of RGB pixels. Unless the program is long, two pixels are loaded before the
// first one is used.
template <class Program, class Column>
inline void run_column(const HeldPorts<Program>& held, const typename Program::Numbers& numbers, const Column& column,
                       const TilePlace<Program::Interpolator::kStep>& place, Lane<Program>& lane, bool& fault) {
  using Pixel = typename Column::Pixel;
  constexpr int kStep = Program::Interpolator::kStep;
  uint8_t* at[Program::kPorts];
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p)
    at[p] = held.data[p] + place.x * held.stride[p][0] + place.y0 * held.stride[p][1];
  const auto finish = [&](const Pixel& pixel) {
    int32_t value[3];
    pixel.take(column, value);
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p) lane.at[p] = at[p];
    if constexpr (!Program::kFlat) {
#pragma unroll
      for (int c = 0; c < Program::kSampled; ++c) lane.sampled.value[c] = value[c];
      Program::run(lane, numbers, fault);
    } else {
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        lane.sampled.value[0] = value[c];
        Program::run(lane, numbers, fault);
#pragma unroll
        for (int p = 1; p < Program::kPorts; ++p) lane.at[p] += held.channel[p];
      }
    }
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p) at[p] += kStep * held.stride[p][1];
  };
  using Index = typename Column::Index;
  const auto y0 = static_cast<Index>(place.y0), y1 = static_cast<Index>(place.y1);
  if constexpr (!Program::kShort) {
    for (Index y = y0; y < y1; y += kStep) finish(Pixel(column, y));
    return;
  }
  for (Index y = y0; y < y1; y += 2 * kStep) {
    const bool two = y + kStep < y1;
    const Pixel first(column, y), second(column, two ? y + kStep : y);
    finish(first);
    if (two) finish(second);
  }
}

// Compute a tile of a sampled row, by one block.
template <class Program>
inline void run_tile(const Row<Program>& row, const typename Program::Interpolator::Scratch& scratch, uint32_t tile,
                     bool& fault) {
  const Slot& slot = row.slot();
  constexpr int kStep = Program::Interpolator::kStep;
  const TilePlace<kStep> place(tile, slot.extent[0], slot.extent[1]);
  const int64_t channels = slot.extent[2];
  const HeldPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  const typename Program::Interpolator::Reader reader(row.interpolator(), scratch);
  Lane<Program> lane;
  lane.channel = held.channel;
  if constexpr (Program::Interpolator::kQuick && Program::kSampled <= 3 && Program::kShort) {
    if (reader.quick() && (!Program::kFlat || channels == 3)) {
      if (reader.walk() == Walk::Fixed)
        return run_column(held, numbers, PickColumn<true>(reader, place.x), place, lane, fault);
      if (reader.walk() == Walk::Scale)
        return run_column(held, numbers, PickColumn<false>(reader, place.x), place, lane, fault);
      if (reader.quick() == 4) return run_column(held, numbers, QuickColumn<4>(reader, place.x), place, lane, fault);
      return run_column(held, numbers, QuickColumn<3>(reader, place.x), place, lane, fault);
    }
  }
  uint8_t* at[Program::kPorts];
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p)
    at[p] = held.data[p] + place.x * held.stride[p][0] + place.y0 * held.stride[p][1];
  for (int64_t y = place.y0; y < place.y1; y += kStep) {
    if constexpr (!Program::kFlat) {
      run_pixel(numbers, reader, y, place.x, at, lane, fault);
    } else if (channels == 3 && !reader.single) {
      run_channels<3>(held, numbers, reader, y, place.x, 0, at, lane, fault);
    } else {
      for (int64_t c = 0; c < channels; ++c) run_channels<1>(held, numbers, reader, y, place.x, c, at, lane, fault);
    }
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p) at[p] += kStep * held.stride[p][1];
  }
}

// Compute a tile of a row that has been resampled already, by one block.
template <class Program>
inline void run_words(const uint8_t* slots, uint64_t slot_bytes, const ResampleScratch* scratches, uint32_t* report,
                      const gpu::RowBlock& work) {
  const Row<Program> row{slots + work.row * slot_bytes};
  const TilePlace<1> place(work.number, row.slot().extent[0], row.slot().extent[1]);
  const HeldPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  Lane<Program> lane;
  lane.channel = held.channel;
  bool fault = false;
  run_column(held, numbers, WordColumn(row.interpolator(), scratches[work.row], place.x), place, lane, fault);
  if (Program::kDivides && fault) report[work.row] = 1;
}

// Compute a part of a row's lanes, or a tile of a sampled row, by one block. Tiles are numbered row by row. Without an
// interpolator `scratches` is the number of elements of a part.
template <class Program>
inline void run_block(const uint8_t* slots, uint64_t slot_bytes, const void* scratches, uint32_t* report,
                      const gpu::RowBlock& work) {
  using Scratch = typename Program::Interpolator::Scratch;
  const Row<Program> row{slots + work.row * slot_bytes};
  bool fault = false;
  if constexpr (Program::Interpolator::kHasScratch)
    run_tile(row, static_cast<const Scratch*>(scratches)[work.row], work.number, fault);
  else if constexpr (Program::Interpolator::kSamples) run_tile(row, Scratch{}, work.number, fault);
  else
    run_unsampled(
        row,
        Part{work.number, part_lanes(static_cast<int64_t>(reinterpret_cast<uint64_t>(scratches)), row.slot().inner)},
        fault);
  if (Program::kDivides && fault) report[work.row] = 1;
}

}  // namespace stoker::stage

// Define a stage's kernel that calls `function`. `blocks` is the minimum number of resident blocks per multiprocessor:
// memory latency dominates, so registers are best spent on more blocks. `Scratch` is the type of the rows' scratches.
#define STOKER_STAGE_KERNEL(name, function, Scratch, blocks)                                                          \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, blocks)                                                 \
      name(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, uint64_t report, uint64_t starts, uint64_t count, \
           uint64_t first) {                                                                                          \
    function(reinterpret_cast<const uint8_t*>(slots), slot_bytes, reinterpret_cast<const Scratch*>(scratches),        \
             reinterpret_cast<uint32_t*>(report), stoker::gpu::find_work(starts, count, first));                      \
  }

// Define the kernel of a generated stage.
#define STOKER_STAGE(Program, blocks) STOKER_STAGE_KERNEL(stoker_stage, stoker::stage::run_block<Program>, void, blocks)

// Define the kernel of the same stage for rows that have been resampled already.
#define STOKER_WORDS(Program, blocks) \
  STOKER_STAGE_KERNEL(stoker_words, stoker::stage::run_words<Program>, stoker::stage::ResampleScratch, blocks)
