// SPDX-License-Identifier: Apache-2.0
// The frame of every generated stage: which lane a thread computes, where its elements lie, the sample, the program.
#pragma once
#include "device.cuh"
#include "stage_ops.cuh"
#include "stage_sample.cuh"
#include "stage_slot.hpp"

namespace stoker::stage {

// A row as it lies in memory; see stage_slot.hpp. An empty sampler's slot takes no room.
template <class Program>
struct Row {
  const uint8_t* base;
  using SamplerSlot = typename Program::Sampler::Slot;
  static constexpr int64_t kSampler = Program::Sampler::kSamples ? static_cast<int64_t>(sizeof(SamplerSlot)) : 0;
  const Slot& slot() const { return *reinterpret_cast<const Slot*>(base); }
  const SamplerSlot& sampler() const { return *reinterpret_cast<const SamplerSlot*>(base + sizeof(Slot)); }
  const Port& port(int p) const {
    return *reinterpret_cast<const Port*>(base + sizeof(Slot) + kSampler + p * sizeof(Port));
  }
  template <class T>
  T uniform(int u) const {
    return *reinterpret_cast<const T*>(base + sizeof(Slot) + kSampler + Program::kPorts * sizeof(Port) + u * 8);
  }
};

// One lane: what generated code reads and writes.
template <class Program>
struct Lane {
  using Sampler = typename Program::Sampler;
  template <class S, bool = S::kSamples>
  struct Sampled {
    int unused;
  };
  template <class S>
  struct Sampled<S, true> {
    typename S::Type value[Program::kSampled];
  };

  uint8_t* at[Program::kPorts];
  const int64_t* channel;
  Sampled<Sampler> sampled;

  template <class E>
  typename E::Register load(int port, int c) const {
    const uint8_t* p = at[port] + (c ? c * channel[port] : 0);
    const auto x = *reinterpret_cast<const typename E::Memory*>(p);
    if constexpr (std::is_same_v<E, F16>) return op::half_to_float(x);
    else if constexpr (std::is_same_v<E, BF16>) return float_from_bfloat(x);
    else return static_cast<typename E::Register>(x);
  }
  template <class E>
  typename E::Register sample(int c) const { return static_cast<typename E::Register>(sampled.value[c]); }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    const int port = Program::kInputs + output;
    uint8_t* p = at[port] + (c ? c * channel[port] : 0);
    if constexpr (std::is_same_v<E, F16>) *reinterpret_cast<uint16_t*>(p) = op::float_to_half(x);
    else if constexpr (std::is_same_v<E, BF16>) *reinterpret_cast<uint16_t*>(p) = bfloat_from_float(x);
    else *reinterpret_cast<typename E::Memory*>(p) = static_cast<typename E::Memory>(x);
  }
};

// What a thread holds of its row while it goes through its lanes: a store might change the slot as far as the compiler
// can tell, so that all of it would be read again for every lane.
template <class Program>
struct Held {
  static constexpr int kAxesHeld = 3;
  uint8_t* data[Program::kPorts];
  int64_t channel[Program::kPorts];
  int64_t stride[Program::kPorts][kAxesHeld];

  explicit Held(const Row<Program>& row) {
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

// Where lane `number` of a row without a sampler lies. Coordinates are innermost first; the strides of axes that are not
// there are never used.
template <class Program, class Count>
inline void locate(const Row<Program>& row, const Held<Program>& held, Count rest, Lane<Program>& lane) {
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
  for (int d = 0; d < Held<Program>::kAxesHeld; ++d) {
    if (d > last) return;
    const auto index = static_cast<int64_t>(take(d));
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += index * held.stride[p][d];
  }
  for (int d = Held<Program>::kAxesHeld; d <= last; ++d) {
    const auto index = static_cast<int64_t>(take(d));
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += index * row.port(p).stride[d];
  }
}

// One block: kTileLanes lanes of a row without a sampler.
template <class Program>
inline void run_lanes(const Row<Program>& row, uint32_t tile, bool& fault) {
  const auto lanes = static_cast<uint64_t>(row.slot().lanes);
  const uint64_t begin = uint64_t{tile} * kTileLanes;
  const uint64_t end = begin + kTileLanes < lanes ? begin + kTileLanes : lanes;
  const Held<Program> held(row);
  const typename Program::Numbers numbers(row);
  Lane<Program> lane;
  lane.channel = held.channel;
  for (uint64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
    if (lanes <= 0xFFFFFFFFull) locate(row, held, static_cast<uint32_t>(i), lane);
    else locate(row, held, i, lane);
    Program::run(lane, numbers, fault);
  }
}

// One sampled pixel: N channels from c on, which a flat program takes one by one.
template <int N, class Program>
inline void run_channels(const Held<Program>& held, const typename Program::Numbers& numbers,
                         const typename Program::Sampler::Reader& reader, int64_t y, int64_t x, int64_t c,
                         Lane<Program>& lane, bool& fault) {
  typename Program::Sampler::Type value[N];
  reader.template sample<N>(y, x, reader.single ? 0 : c, value);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    lane.sampled.value[0] = value[k];
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p)
      lane.at[p] = held.data[p] + x * held.stride[p][0] + y * held.stride[p][1] + (c + k) * held.channel[p];
    Program::run(lane, numbers, fault);
  }
}

template <class Program>
inline void run_pixel(const Held<Program>& held, const typename Program::Numbers& numbers,
                      const typename Program::Sampler::Reader& reader, int64_t y, int64_t x, Lane<Program>& lane,
                      bool& fault) {
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p)
    lane.at[p] = held.data[p] + x * held.stride[p][0] + y * held.stride[p][1];
  auto* value = lane.sampled.value;
  if (Program::kSampled > 1 && reader.single) {  // one channel is shown to all
    reader.template sample<1>(y, x, 0, value);
#pragma unroll
    for (int c = 1; c < Program::kSampled; ++c) value[c] = value[0];
  } else {
    reader.template sample<Program::kSampled>(y, x, 0, value);
  }
  Program::run(lane, numbers, fault);
}

// One block: a tile of a sampled row.
template <class Program>
inline void run_tile(const Row<Program>& row, const typename Program::Sampler::Room& room, uint32_t tile,
                     bool& fault) {
  const Slot& slot = row.slot();
  const TilePlace place(tile, slot.extent[0], slot.extent[1]);
  const int64_t channels = slot.extent[2];
  const Held<Program> held(row);
  const typename Program::Numbers numbers(row);
  const typename Program::Sampler::Reader reader(row.sampler(), room);
  Lane<Program> lane;
  lane.channel = held.channel;
  for (int64_t y = place.y0; y < place.y1; ++y) {
    if constexpr (!Program::kFlat) {
      run_pixel(held, numbers, reader, y, place.x, lane, fault);
    } else if (channels == 3 && !reader.single) {
      run_channels<3>(held, numbers, reader, y, place.x, 0, lane, fault);
    } else {
      for (int64_t c = 0; c < channels; ++c) run_channels<1>(held, numbers, reader, y, place.x, c, lane, fault);
    }
  }
}

// One block: one piece of work.
template <class Program>
inline void run_block(const uint8_t* slots, uint64_t slot_bytes, const Work* work, const void* rooms,
                      uint32_t* report) {
  using Room = typename Program::Sampler::Room;
  const Work item = work[gpu::block_index()];
  const Row<Program> row{slots + item.row * slot_bytes};
  bool fault = false;
  if constexpr (Program::Sampler::kSamples) run_tile(row, static_cast<const Room*>(rooms)[item.row], item.tile, fault);
  else run_lanes(row, item.tile, fault);
  if (Program::kDivides && fault) report[item.row] = 1;
}

}  // namespace stoker::stage

// The entry of a generated stage, of which a multiprocessor is to hold `blocks` blocks at least: waiting for memory is
// what takes the time, so that registers are best spent on more of them.
#define STOKER_STAGE(Program, blocks)                                                                               \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, blocks)                                               \
      stoker_stage(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms, uint64_t report) {           \
    stoker::stage::run_block<Program>(reinterpret_cast<const uint8_t*>(slots), slot_bytes,                          \
                                      reinterpret_cast<const stoker::stage::Work*>(work),                           \
                                      reinterpret_cast<const void*>(rooms), reinterpret_cast<uint32_t*>(report));   \
  }
