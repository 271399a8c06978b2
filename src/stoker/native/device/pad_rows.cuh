// SPDX-License-Identifier: Apache-2.0
// Rows of several shapes in one tensor, which is filled up after each of them.
#pragma once
#include "device/own.cuh"

namespace stoker::pad {

// Copy one part of a row. `table` has a line of the rows' addresses and one of their extents on each axis, each with a
// number for the tensor at its end. A block has kElements elements, and a row `row_blocks` blocks.
template <class T>
struct Rows {
  static constexpr int64_t kElements = 2048;  // of a block; also in frameworks/_torch_padding.py

  static void copy(const int64_t* table, int64_t rows, int rank, int64_t row_blocks, T fill, T* to) {
    const int64_t row = own::quotient(gpu::block_index(), row_blocks), part = gpu::block_index() - row * row_blocks;
    const auto* from = reinterpret_cast<const T*>(table[row]);
    const int64_t* const lines = table + rows + 1;  // of extents
    const auto extent = [&](int d, int64_t of) { return lines[d * (rows + 1) + of]; };
    int64_t elements = 1;
    for (int d = 0; d < rank; ++d) elements *= extent(d, rows);
    const int64_t begin = part * kElements, end = begin + kElements < elements ? begin + kElements : elements;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t left = i, offset = 0, apart = 1;
      bool is_inside = true;
      for (int d = rank - 1; d >= 0; --d) {
        const int64_t above = own::quotient(left, extent(d, rows)), at = left - above * extent(d, rows);
        left = above;
        is_inside &= at < extent(d, row);
        offset += at * apart;
        apart *= extent(d, row);
      }
      to[row * elements + i] = is_inside ? from[offset] : fill;
    }
  }
};

}  // namespace stoker::pad

#define STOKER_PAD_ROWS(T)                                                                                             \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 1)                                                                           \
      stoker_pad_rows(uint64_t table, uint64_t rows, uint64_t rank, uint64_t row_blocks, uint64_t fill, uint64_t to) { \
    stoker::pad::Rows<T>::copy(reinterpret_cast<const int64_t*>(table), static_cast<int64_t>(rows),                    \
                               static_cast<int>(rank), static_cast<int64_t>(row_blocks), static_cast<T>(fill),         \
                               reinterpret_cast<T*>(to));                                                              \
  }
