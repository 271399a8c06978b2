// SPDX-License-Identifier: Apache-2.0
// Operators in CUDA (stoker.cpp.load with `cuda`): the interface of a user's kernels, version 1. The host compiler and
// NVRTC compile it. Generated code (device/own.py) declares st::Row for the element types that occur.
//
//     ST_LAUNCHES(R"(
//       kernel maximum: h * w * c
//     )")
//     ST_KERNEL(maximum, row, i) {        // runs for each i from 0 to h * w * c - 1
//       const auto in = row.in<0>();      // st::Array<const uint8_t>, if that is the input's type
//       const auto out = row.out<0>();
//       ...
//     }
//
// `kernel NAME: COUNT` launches COUNT threads per row, `blocks NAME: COUNT of THREADS` blocks of threads, for ST_BLOCKS.
// Kernels run one after the other. `memory: BYTES` is memory of a row that the kernels share, not cleared.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "device/own.cuh"

// The loader reads the text; the compiler needs none of it.
#define ST_LAUNCHES(text)

#define ST_KERNEL(name, row, i)                     \
  struct st_kernel_##name {                         \
    static void run(const st::Row& row, int64_t i); \
  };                                                \
  inline void st_kernel_##name::run(const st::Row& row, int64_t i)

// The body runs in all threads of each block; st::thread() is the thread's number in its block.
#define ST_BLOCKS(name, row, block)                      \
  struct st_kernel_##name {                              \
    static void run(const st::Row& row, uint32_t block); \
  };                                                     \
  inline void st_kernel_##name::run(const st::Row& row, uint32_t block)

// ST_SHARED(float, tile, 256): an array in the block's shared memory.
#define ST_SHARED(type, name, count)                         \
  using st_type_of_##name = stoker::own::Array<type, count>; \
  STOKER_SHARED(st_type_of_##name, name)

namespace st {

inline uint32_t thread() { return stoker::gpu::thread_index(); }
inline uint32_t threads() { return stoker::gpu::thread_count(); }
inline void barrier() { stoker::gpu::block_barrier(); }

// Elements of a tensor in GPU memory: x(i, j, k).
template <class T>
class Array {
 public:
  explicit Array(const stoker::own::Port& port) : port_(&port) {}
  int32_t rank() const { return static_cast<int32_t>(port_->rank); }
  int64_t shape(int axis) const { return port_->shape[axis]; }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t i = 0; i < port_->rank; ++i) n *= port_->shape[i];
    return n;
  }
  template <class... Index>
  T& operator()(Index... index) const {
    const int64_t at[] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int i = 0; i < static_cast<int>(sizeof...(index)); ++i) offset += at[i] * port_->stride[i];
    return *reinterpret_cast<T*>(port_->data + static_cast<uint64_t>(offset));
  }

 private:
  const stoker::own::Port* port_;
};

namespace impl {
template <class Element>
struct Memory {
  static_assert(!std::is_same_v<Element, stoker::own::F16> && !std::is_same_v<Element, stoker::own::BF16>,
                "operators in CUDA have no elements of type float16 or bfloat16: cast them before");
  using Type = typename Element::Value;
};
}  // namespace impl

// A row of the batch, whose first `Inputs` tensors are inputs.
template <class Elements, int Inputs>
class RowOf {
 public:
  template <int I>
  using In = typename impl::Memory<typename Elements::template At<I>>::Type;
  template <int I>
  using Out = typename impl::Memory<typename Elements::template At<Inputs + I>>::Type;

  explicit RowOf(const stoker::own::Row& row) : row_(row) {}
  template <int I>
  Array<const In<I>> in() const {
    return Array<const In<I>>(row_.port(I));
  }
  template <int I>
  Array<Out<I>> out() const {
    return Array<Out<I>>(row_.port(Inputs + I));
  }
  double arg(int i) const { return row_.number(i); }  // in the order of the declaration
  template <class T>
  T* memory(int64_t offset_bytes = 0) const {
    return row_.scratch<T>(offset_bytes);
  }

 private:
  stoker::own::Row row_;
};

// Convert as all of Stoker's operators do: round half to even, saturate, NaN becomes 0.
template <class T>
inline T round(double x) {
  return stoker::pixel::scalar::in_range<T, double>(x);
}

namespace impl {

// Passes of device/own.cuh. Number `Count` of the row is how many threads the kernel wants.
template <class Row, class Kernel, int Count>
struct Threads {
  static void pass(const stoker::own::Row& raw, uint32_t block) {
    const int64_t i = static_cast<int64_t>(block) * stoker::own::kThreads + stoker::gpu::thread_index();
    if (i < static_cast<int64_t>(raw.number(Count))) Kernel::run(Row(raw), i);
  }
};
template <class Row, class Kernel>
struct Blocks {
  static void pass(const stoker::own::Row& raw, uint32_t block) { Kernel::run(Row(raw), block); }
};

}  // namespace impl

}  // namespace st
