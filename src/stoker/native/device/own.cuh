// SPDX-License-Identifier: Apache-2.0
// Framework for operators' own kernels, which are not stages: a row by its descriptor, elements of any type, and the
// entry point of a pass. `OwnKernel` in contract/step.py is the operator's side, gpu_kernels/own.cpp the host's.
#pragma once
#include "device/row_blocks.cuh"
#include "device/stage_ops.cuh"
#include "shared/device.cuh"
#include "shared/own_slot.hpp"

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

// Element types of an operator's inputs, then of its outputs.
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
  // Fail the row with the text that the operator gave (`Launches.fault` in contract/step.py).
  void fail() const { gpu::atomic_or(reinterpret_cast<uint32_t*>(slot().fault), 1); }
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

// a / b, for a >= 0 and b > 0. A division of 32 bits takes a fraction of the time.
inline int64_t quotient(int64_t a, int64_t b) {
  if ((static_cast<uint64_t>(a) | static_cast<uint64_t>(b)) >> 32) return a / b;
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}

// Elements of some of a tensor's axes.
inline int64_t extent_of(const Port& port, int first, int last) {
  int64_t count = 1;
  for (int d = first; d < last; ++d) count *= port.shape[d];
  return count;
}
// Offset in bytes of element i of these axes, in their order.
inline int64_t offset_of(const Port& port, int64_t i, int first, int last) {
  int64_t offset = 0;
  for (int d = last - 1; d >= first; --d) {
    const int64_t above = quotient(i, port.shape[d]);
    offset += (i - above * port.shape[d]) * port.stride[d];
    i = above;
  }
  return offset;
}
inline int64_t offset_of(const Port& port, int64_t i) { return offset_of(port, i, 0, static_cast<int>(port.rank)); }
// Whether the elements of `bytes` of the axes from `first` on follow each other without gaps.
inline bool is_contiguous(const Port& port, int64_t bytes, int first = 0) {
  for (int d = static_cast<int>(port.rank) - 1; d >= first; bytes *= port.shape[d--])
    if (port.shape[d] > 1 && port.stride[d] != bytes) return false;
  return true;
}

// Array type, since shared memory is declared by a type and a name.
template <class T, int N>
struct Array {
  T values[N];
  T& operator[](int64_t i) { return values[i]; }
};

// Axes of an image in a tensor, as the CPU's kernels see them; a missing axis has one element.
struct Image {
  uint8_t* data;
  int64_t frames, height, width, channels;
  int64_t frame, row, column, channel;  // strides in bytes

  bool inner;  // a pixel's channels are contiguous

  // Four of the row's numbers, from `axes` on, say which axes are F, H, W and C (-1: none).
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

// Define a kernel for pass `function` of an operator: function(row, block) runs for each of a row's blocks, which have
// `threads` threads. The compiler limits registers so that `resident` blocks fit on a multiprocessor.
#define STOKER_PASS(name, threads, resident, ...)                                                                \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(threads, resident)                                                          \
      name(uint64_t slots, uint64_t slot_bytes, uint64_t starts, uint64_t count, uint64_t first) {               \
    const stoker::gpu::RowBlock& work = stoker::gpu::find_work(starts, count, first);                            \
    __VA_ARGS__(stoker::own::Row{reinterpret_cast<const uint8_t*>(slots) + work.row * slot_bytes}, work.number); \
  }
