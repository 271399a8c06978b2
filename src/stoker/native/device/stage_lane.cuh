// SPDX-License-Identifier: Apache-2.0
// A stage's row in memory, the lane of a thread, and the addresses of its elements.
#pragma once
#include "device/stage_ops.cuh"
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
  // Look up a byte.
  template <class E>
  typename E::Register lookup_byte(int port, int32_t index, int32_t length) const {
    return lookup<E>(port, index, length);
  }
  template <class E>
  typename E::Register sample(int c) const {
    return static_cast<typename E::Register>(sampled.value[c]);
  }
  template <class E>
  float load_as_float(int port, int c) const {
    return static_cast<float>(load<E>(port, c));
  }
  int32_t coordinate(int port) const { return coordinate_at(at[port]); }
  float sample_as_float(int c) const { return static_cast<float>(sampled.value[c]); }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    const int port = Program::kInputs + output;
    uint8_t* p = at[port] + (c ? c * channel[port] : 0);
    *reinterpret_cast<typename E::Memory*>(p) = in_memory<E>(x);
  }
  // Store a number that is rounded and saturated to the element type.
  template <class E, class From>
  void store_cast(int output, int c, From x) const {
    store<E>(output, c, op::cast<E>(x));
  }
};

// A thread's copy of its row's descriptor for the loop over lanes. Without it the compiler, which must assume that
// stores change the slot, would read the slot again for every lane.
template <class Program, int kAxesHeld_ = 3>
struct HeldPorts {
  static constexpr int kAxesHeld = kAxesHeld_;
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

// Find the addresses of the lane at `x` of line `rest` of a row without an interpolator. Coordinates are innermost first;
// strides of axes that do not exist are never used.
template <class Program, int axes, class Count>
inline void locate(const Row<Program>& row, const HeldPorts<Program, axes>& held, Count x, Count rest,
                   Lane<Program>& lane) {
  const Slot& slot = row.slot();
  const int last = slot.axes - 1;
#pragma unroll
  for (int p = 0; p < Program::kPorts; ++p) lane.at[p] = held.data[p] + static_cast<int64_t>(x) * held.stride[p][0];
  const auto take = [&](int d) {
    if (d == last) return rest;
    const auto extent = static_cast<Count>(slot.extent[d]);
    const Count above = rest / extent, index = rest - above * extent;
    rest = above;
    return index;
  };
#pragma unroll
  for (int d = 1; d < axes; ++d) {
    if (d > last) return;
    const auto index = static_cast<int64_t>(take(d));
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += index * held.stride[p][d];
  }
  for (int d = axes; d <= last; ++d) {
    const auto index = static_cast<int64_t>(take(d));
#pragma unroll
    for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += index * row.port(p).stride[d];
  }
}

// Find the addresses of lane `number` of such a row.
template <class Program, int axes, class Count>
inline void locate(const Row<Program>& row, const HeldPorts<Program, axes>& held, Count number, Lane<Program>& lane) {
  const auto width = static_cast<Count>(row.slot().extent[0]);
  const Count line = row.slot().axes == 1 ? 0 : number / width;
  locate(row, held, number - line * width, line, lane);
}

}  // namespace stoker::stage
