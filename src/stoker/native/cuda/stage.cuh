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
  const uint8_t* uniform(int u) const {
    return base + sizeof(Slot) + kSampler + Program::kPorts * sizeof(Port) + u * 8;
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

  Row<Program> row;
  uint8_t* at[Program::kPorts];
  Sampled<Sampler> sampled;

  template <class T>
  T uniform(int u) const { return *reinterpret_cast<const T*>(row.uniform(u)); }
  template <class E>
  typename E::Register load(int port, int channel) const {
    const uint8_t* p = at[port] + (channel ? channel * row.port(port).channel : 0);
    const auto x = *reinterpret_cast<const typename E::Memory*>(p);
    if constexpr (std::is_same_v<E, F16>) return op::half_to_float(x);
    else return static_cast<typename E::Register>(x);
  }
  template <class E>
  typename E::Register sample(int channel) const { return static_cast<typename E::Register>(sampled.value[channel]); }
  template <class E>
  void store(int output, int channel, typename E::Register x) const {
    const int port = Program::kInputs + output;
    uint8_t* p = at[port] + (channel ? channel * row.port(port).channel : 0);
    if constexpr (std::is_same_v<E, F16>) *reinterpret_cast<uint16_t*>(p) = op::float_to_half(x);
    else *reinterpret_cast<typename E::Memory*>(p) = static_cast<typename E::Memory>(x);
  }
};

// Takes a lane's number apart into its coordinates, innermost first.
template <class Count, class Visit>
inline void coordinates(const Slot& slot, Count rest, Visit&& visit) {
  const int last = slot.axes - 1;
  for (int d = 0; d < last; ++d) {
    const auto extent = static_cast<Count>(slot.extent[d]);
    const Count above = rest / extent;
    visit(d, static_cast<int64_t>(rest - above * extent));
    rest = above;
  }
  visit(last, static_cast<int64_t>(rest));
}

template <class Program>
inline void take_sample(Lane<Program>& lane, const typename Program::Sampler::Room& room, const int64_t* index) {
  using Sampler = typename Program::Sampler;
  const auto& slot = lane.row.sampler();
  auto* value = lane.sampled.value;
  const bool single = slot.source.channels == 1;  // shown to all channels
  if constexpr (Program::kFlat) {
    Sampler::template sample<1>(slot, room, index[2], index[1], single ? 0 : index[0], value);
  } else if (Program::kSampled > 1 && single) {
    Sampler::template sample<1>(slot, room, index[1], index[0], 0, value);
#pragma unroll
    for (int c = 1; c < Program::kSampled; ++c) value[c] = value[0];
  } else {
    Sampler::template sample<Program::kSampled>(slot, room, index[1], index[0], 0, value);
  }
}

template <class Program>
inline void run_lane(const Row<Program>& row, const typename Program::Sampler::Room& room, uint64_t number,
                     bool& fault) {
  const Slot& slot = row.slot();
  Lane<Program> lane;
  lane.row = row;
  int64_t offset[Program::kPorts] = {};
  int64_t index[3];
  const auto move = [&](int d, int64_t i) {
    if constexpr (Program::Sampler::kSamples) index[d] = i;
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) offset[p] += i * row.port(p).stride[d];
  };
  if (slot.lanes <= 0xFFFFFFFFll) coordinates(slot, static_cast<uint32_t>(number), move);
  else coordinates(slot, number, move);
#pragma unroll
  for (int p = 0; p < Program::kPorts; ++p) lane.at[p] = reinterpret_cast<uint8_t*>(row.port(p).data) + offset[p];
  if constexpr (Program::Sampler::kSamples) take_sample(lane, room, index);
  Program::run(lane, fault);
}

// One block: the lanes of one piece of work.
template <class Program>
inline void run_block(const uint8_t* slots, uint64_t slot_bytes, const Work* work, const void* rooms,
                      uint32_t* report) {
  using Room = typename Program::Sampler::Room;
  const Work item = work[gpu::block_index()];
  const Row<Program> row{slots + item.row * slot_bytes};
  const auto lanes = static_cast<uint64_t>(row.slot().lanes);
  const uint64_t begin = uint64_t{item.tile} * kTileLanes;
  const uint64_t end = begin + kTileLanes < lanes ? begin + kTileLanes : lanes;
  bool fault = false;
  for (uint64_t i = begin + gpu::thread_index(); i < end; i += kThreads)
    run_lane<Program>(row, static_cast<const Room*>(rooms)[Program::Sampler::kSamples ? item.row : 0], i, fault);
  if (Program::kDivides && fault) report[item.row] = 1;
}

}  // namespace stoker::stage

// The entry of a generated stage.
#define STOKER_STAGE(Program)                                                                                       \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, 2)                                                    \
      stoker_stage(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms, uint64_t report) {           \
    stoker::stage::run_block<Program>(reinterpret_cast<const uint8_t*>(slots), slot_bytes,                          \
                                      reinterpret_cast<const stoker::stage::Work*>(work),                           \
                                      reinterpret_cast<const void*>(rooms), reinterpret_cast<uint32_t*>(report));   \
  }
