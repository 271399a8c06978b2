// SPDX-License-Identifier: Apache-2.0
// What kernels of operators are written in that are no stages: a row as its slot describes it, elements of any type, and
// the entry of a pass. See `OwnKernel` in contract/step.py for what an operator says, and own_gpu.cpp for the host's side.
#pragma once
#include "device.cuh"
#include "own_slot.hpp"
#include "stage_ops.cuh"

namespace stoker::own {

namespace op = stage::op;
using stage::BF16;
using stage::Bool;
using stage::F16;
using stage::F32;
using stage::F64;
using stage::I16;
using stage::I32;
using stage::I64;
using stage::I8;
using stage::U16;
using stage::U32;
using stage::U64;
using stage::U8;

// The element types of an operator's inputs, then of its outputs.
template <class... Elements>
struct Types;
template <class First, class... Rest>
struct Types<First, Rest...> {
  template <int I>
  static auto find() {
    if constexpr (I == 0) return First{};
    else return Types<Rest...>::template find<I - 1>();
  }
  template <int I>
  using At = decltype(find<I>());
};

struct Row {
  const uint8_t* base;
  const Slot& slot() const { return *reinterpret_cast<const Slot*>(base); }
  const Port& port(int i) const {
    return *reinterpret_cast<const Port*>(base + sizeof(Slot) + static_cast<uint64_t>(i) * sizeof(Port));
  }
  double number(int i) const { return reinterpret_cast<const double*>(&port(static_cast<int>(slot().ports)))[i]; }
  template <class T>
  T* scratch(int64_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(slot().scratch + static_cast<uint64_t>(offset_bytes));
  }
};

template <class E>
inline typename E::Register load(const uint8_t* p) {
  const auto x = *reinterpret_cast<const typename E::Memory*>(p);
  if constexpr (std::is_same_v<E, F16>) return op::half_to_float(x);
  else if constexpr (std::is_same_v<E, BF16>) return float_from_bfloat(x);
  else return static_cast<typename E::Register>(x);
}

template <class E>
inline void store(uint8_t* p, typename E::Register x) {
  if constexpr (std::is_same_v<E, F16>) *reinterpret_cast<uint16_t*>(p) = op::float_to_half(x);
  else if constexpr (std::is_same_v<E, BF16>) *reinterpret_cast<uint16_t*>(p) = bfloat_from_float(x);
  else *reinterpret_cast<typename E::Memory*>(p) = static_cast<typename E::Memory>(x);
}

// Shared memory is declared by a type and a name.
template <class T, int N>
struct Array {
  T values[N];
  T& operator[](int64_t i) { return values[i]; }
};

// An image's axes in a tensor, as the CPU's kernels see them: axes that are not there have one element.
struct Image {
  uint8_t* data;
  int64_t frames, height, width, channels;
  int64_t frame, row, column, channel;  // strides in bytes

  bool inner;  // whether a pixel's channels lie beside each other

  // Which axes are F, H, W and C (-1: none) are four of the row's numbers, from `axes` on.
  Image(const Row& r, int number, int axes) : data(reinterpret_cast<uint8_t*>(r.port(number).data)) {
    const Port& port = r.port(number);
    const auto take = [&](int i, int64_t& extent, int64_t& stride) {
      const auto axis = static_cast<int>(r.number(axes + i));
      extent = axis < 0 ? 1 : port.shape[axis];
      stride = axis < 0 ? 0 : port.stride[axis];
    };
    take(0, frames, frame);
    take(1, height, row);
    take(2, width, column);
    take(3, channels, channel);
    inner = r.number(axes + 3) < 0 || r.number(axes + 3) > r.number(axes + 2);
  }
};

}  // namespace stoker::own

// Pass `function` of an operator as what a device launches: `function(row, block)` for each of a row's blocks.
#define STOKER_PASS(name, ...)                                                                                  \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::own::kThreads, 2)                                                  \
      name(uint64_t slots, uint64_t slot_bytes, uint64_t work) {                                                \
    const auto item = reinterpret_cast<const stoker::own::Work*>(work)[stoker::gpu::block_index()];             \
    __VA_ARGS__(stoker::own::Row{reinterpret_cast<const uint8_t*>(slots) + item.row * slot_bytes}, item.block); \
  }
