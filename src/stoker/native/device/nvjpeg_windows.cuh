// SPDX-License-Identifier: Apache-2.0
// Work on whole pictures that a GPU's JPEG engines have decoded: copy their windows to the output, and compare some
// with the exact decoder's. T is the type of the output's elements (device/pixel_elements.cuh).
#pragma once
#include "device/pixel_elements.cuh"
#include "device/row_blocks.cuh"
#include "shared/nvjpeg_row.cuh"

namespace stoker::nvjpeg {

using namespace gpu;

struct CompareShared {
  uint32_t sum, least;  // `least` is 255 less the largest difference
};

STOKER_DEVICE uint32_t end_of(const Row& row, uint32_t first) {
  const uint32_t pixels = row.width * row.height;
  return pixels - first < kPixelsPerCta ? pixels : first + kPixelsPerCta;
}

template <class T>
STOKER_DEVICE T* pixel_at(uint64_t address, uint32_t y, int64_t step_y, uint32_t x, int64_t step_x) {
  return at<T>(address + static_cast<uint64_t>(int64_t{y} * step_y + int64_t{x} * step_x));
}

template <class T>
STOKER_DEVICE void place(uint64_t rows, uint64_t row_bytes, uint64_t starts, uint64_t count, uint64_t first) {
  const RowBlock& work = find_work(starts, count, first);
  const Row& row = *at<const Row>(rows + row_bytes * work.row);
  const uint32_t begin = work.number * kPixelsPerCta, end = end_of(row, begin);
  for (uint32_t i = begin + thread_index(); i < end; i += thread_count()) {
    const uint32_t y = i / row.width, x = i % row.width;
    const uint8_t* const from =
        at<const uint8_t>(row.picture) + uint64_t{row.y0 + y} * row.pitch + uint64_t{row.x0 + x} * 3;
    T* const to = pixel_at<T>(row.out, y, row.step_y, x, row.step_x);
    for (int c = 0; c < 3; ++c) to[c] = element_of<T>(from[c]);
  }
}

// Differences are those of the bytes that elements were made from.
template <class T>
STOKER_DEVICE void compare(uint64_t rows, uint64_t row_bytes, uint64_t differences, uint64_t starts, uint64_t count,
                           uint64_t first) {
  STOKER_SHARED(CompareShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const Row& row = *at<const Row>(rows + row_bytes * work.row);
  if (thread_index() == 0) shared = {0, 255};
  block_barrier();
  const uint32_t begin = work.number * kPixelsPerCta, end = end_of(row, begin);
  uint32_t sum = 0, most = 0;
  for (uint32_t i = begin + thread_index(); i < end; i += thread_count()) {
    const uint32_t y = i / row.width, x = i % row.width;
    const T* const one = pixel_at<const T>(row.out, y, row.step_y, x, row.step_x);
    const T* const other = pixel_at<const T>(row.exact, y, row.exact_step_y, x, row.exact_step_x);
    for (int c = 0; c < 3; ++c) {
      const uint32_t a = level_of(one[c]), b = level_of(other[c]), apart = a < b ? b - a : a - b;
      sum += apart;
      most = apart > most ? apart : most;
    }
  }
  atomic_add(&shared.sum, sum);
  atomic_min(&shared.least, 255 - most);
  block_barrier();
  if (thread_index() == 0)
    at<Difference>(differences)[row.first_difference + work.number] = {shared.sum, 255 - shared.least};
}

}  // namespace stoker::nvjpeg
