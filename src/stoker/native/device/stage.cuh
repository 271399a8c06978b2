// SPDX-License-Identifier: Apache-2.0
// Framework of every generated stage: the lane of a thread, the addresses of its elements, the interpolator, the
// program.
#pragma once
#include "device/row_blocks.cuh"
#include "device/stage_ops.cuh"
#include "device/stage_sample.cuh"
#include "device/stage_warp.cuh"
#include "shared/coordinate.hpp"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Row in memory; see stage_slot.hpp. A stage without an interpolator has no slot for one.
template <class Program>
struct Row {
  const uint8_t* base;
  using InterpolatorSlot = typename Program::Interpolator::Slot;
  static constexpr int64_t kInterpolatorBytes =
      Program::Interpolator::kSamples ? static_cast<int64_t>(sizeof(InterpolatorSlot)) : 0;
  const Slot& slot() const { return *reinterpret_cast<const Slot*>(base); }
  const InterpolatorSlot& interpolator() const {
    return *reinterpret_cast<const InterpolatorSlot*>(base + sizeof(Slot));
  }
  const Port& port(int p) const {
    return *reinterpret_cast<const Port*>(base + sizeof(Slot) + kInterpolatorBytes + p * sizeof(Port));
  }
  template <class T>
  T uniform(int u) const {
    return *reinterpret_cast<const T*>(base + sizeof(Slot) + kInterpolatorBytes + Program::kPorts * sizeof(Port) +
                                       u * 8);
  }
};

// Value in memory for a number that a program stores.
template <class E>
inline typename E::Memory in_memory(typename E::Register x) {
  if constexpr (std::is_same_v<E, F16>) return op::float_to_half(x);
  else if constexpr (std::is_same_v<E, BF16>) return bfloat_from_float(x);
  else return static_cast<typename E::Memory>(x);
}

// Number that a program computes with for a value in memory.
template <class E>
inline typename E::Register from_memory(typename E::Memory x) {
  if constexpr (std::is_same_v<E, F16>) return op::half_to_float(x);
  else if constexpr (std::is_same_v<E, BF16>) return float_from_bfloat(x);
  else return static_cast<typename E::Register>(x);
}

// One lane: the interface that generated code reads and writes.
template <class Program>
struct Lane {
  using Interpolator = typename Program::Interpolator;
  template <class S, bool = S::kSamples>
  struct Sampled {
    int unused;
  };
  template <class S>
  struct Sampled<S, true> {
    std::conditional_t<std::is_same_v<typename S::Type, uint8_t>, int32_t, typename S::Type> value[Program::kSampled];
  };

  uint8_t* at[Program::kPorts];
  const int64_t* channel;
  Sampled<Interpolator> sampled;

  template <class E>
  typename E::Register load(int port, int c) const {
    const uint8_t* p = at[port] + (c ? c * channel[port] : 0);
    return from_memory<E>(*reinterpret_cast<const typename E::Memory*>(p));
  }
  template <class E>
  typename E::Register lookup(int port, int32_t index, int32_t length) const {
    if (static_cast<uint32_t>(index) >= static_cast<uint32_t>(length)) return 0;
    return from_memory<E>(reinterpret_cast<const typename E::Memory*>(at[port])[index]);
  }
  template <class E>
  typename E::Register sample(int c) const {
    return static_cast<typename E::Register>(sampled.value[c]);
  }
  int32_t coordinate(int port) const { return coordinate_at(at[port]); }
  float sample_as_float(int c) const { return static_cast<float>(sampled.value[c]); }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    const int port = Program::kInputs + output;
    uint8_t* p = at[port] + (c ? c * channel[port] : 0);
    *reinterpret_cast<typename E::Memory*>(p) = in_memory<E>(x);
  }
};

// A thread's copy of its row's descriptor for the loop over lanes. Without it the compiler, which must assume that
// stores change the slot, would read the slot again for every lane.
template <class Program>
struct HeldPorts {
  static constexpr int kAxesHeld = 3;
  uint8_t* data[Program::kPorts];
  int64_t channel[Program::kPorts];
  int64_t stride[Program::kPorts][kAxesHeld];

  explicit HeldPorts(const Row<Program>& row) {
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) {
      const Port& port = row.port(p);
      data[p] = reinterpret_cast<uint8_t*>(port.data);
      channel[p] = port.channel;
#pragma unroll
      for (int d = 0; d < kAxesHeld; ++d) stride[p][d] = port.stride[d];
    }
  }
};

// Find the addresses of lane `number` of a row without an interpolator. Coordinates are innermost first; strides of
// axes that do not exist are never used.
template <class Program, class Count>
inline void locate(const Row<Program>& row, const HeldPorts<Program>& held, Count rest, Lane<Program>& lane) {
  const Slot& slot = row.slot();
  const int last = slot.axes - 1;
#pragma unroll
  for (int p = 0; p < Program::kPorts; ++p) lane.at[p] = held.data[p];
  const auto take = [&](int d) {
    if (d == last) return rest;
    const auto extent = static_cast<Count>(slot.extent[d]);
    const Count above = rest / extent, index = rest - above * extent;
    rest = above;
    return index;
  };
#pragma unroll
  for (int d = 0; d < HeldPorts<Program>::kAxesHeld; ++d) {
    if (d > last) return;
    const auto index = static_cast<int64_t>(take(d));
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += index * held.stride[p][d];
  }
  for (int d = HeldPorts<Program>::kAxesHeld; d <= last; ++d) {
    const auto index = static_cast<int64_t>(take(d));
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += index * row.port(p).stride[d];
  }
}

// Compute kTileLanes lanes of a row without an interpolator, by one block.
template <class Program>
inline void run_lanes(const Row<Program>& row, uint32_t tile, bool& fault) {
  const auto lanes = static_cast<uint64_t>(row.slot().lanes);
  const uint64_t begin = uint64_t{tile} * kTileLanes;
  const uint64_t end = begin + kTileLanes < lanes ? begin + kTileLanes : lanes;
  const HeldPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  Lane<Program> lane;
  lane.channel = held.channel;
  for (uint64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
    if (lanes <= 0xFFFFFFFFull) locate(row, held, static_cast<uint32_t>(i), lane);
    else locate(row, held, i, lane);
    Program::run(lane, numbers, fault);
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
    if (!Program::kFlat || channels == 3) {
      if (reader.quick() == 4) return run_column(held, numbers, QuickColumn<4>(reader, place.x), place, lane, fault);
      if (reader.quick() == 3) return run_column(held, numbers, QuickColumn<3>(reader, place.x), place, lane, fault);
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

// Compute kTileLanes lanes of a row, or a tile of a sampled row, by one block. Tiles are numbered row by row.
template <class Program>
inline void run_block(const uint8_t* slots, uint64_t slot_bytes, const void* scratches, uint32_t* report,
                      const gpu::RowBlock& work) {
  using Scratch = typename Program::Interpolator::Scratch;
  const Row<Program> row{slots + work.row * slot_bytes};
  bool fault = false;
  if constexpr (Program::Interpolator::kHasScratch)
    run_tile(row, static_cast<const Scratch*>(scratches)[work.row], work.number, fault);
  else if constexpr (Program::Interpolator::kSamples) run_tile(row, Scratch{}, work.number, fault);
  else run_lanes(row, work.number, fault);
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
