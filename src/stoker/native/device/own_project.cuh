// SPDX-License-Identifier: Apache-2.0
// Weighted sums over the elements of an axis: a thread per sum, in the order of the elements.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: data, weights [rows, bins], output. Numbers: none but the axis.
template <class Ports>
struct Project {
  // Find the range of bins of each row that have weights; one block per row of weights.
  static void bands(const Row& row, uint32_t block) {
    STOKER_SHARED(uint32_t, begin);
    STOKER_SHARED(uint32_t, end);
    const Port& port = row.port(1);
    const int64_t bins = port.shape[1];
    const auto* weights = reinterpret_cast<const float*>(port.data) + block * bins;
    if (gpu::thread_index() == 0) {
      begin = static_cast<uint32_t>(bins);
      end = 0xFFFFFFFFu;  // of ~(last + 1), so that the smallest one is the last
    }
    gpu::block_barrier();
    for (int64_t i = gpu::thread_index(); i < bins; i += gpu::thread_count())
      if (weights[i] != 0.0f) {
        gpu::atomic_min(&begin, static_cast<uint32_t>(i));
        gpu::atomic_min(&end, ~static_cast<uint32_t>(i + 1));
      }
    gpu::block_barrier();
    if (gpu::thread_index() == 0) {
      row.scratch<uint32_t>()[2 * block] = begin;
      row.scratch<uint32_t>()[2 * block + 1] = ~end;
    }
  }

  static void sums(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &w = row.port(1), &y = row.port(2);
    const int axis = static_cast<int>(row.number(0));
    int64_t inner = 1, elements = 1;
    for (int d = 0; d < y.rank; ++d) {
      elements *= y.shape[d];
      if (d > axis) inner *= y.shape[d];
    }
    const int64_t at = static_cast<int64_t>(block) * kThreads + gpu::thread_index();
    if (at >= elements) return;
    const int64_t rows = w.shape[0], bins = w.shape[1], above = at / inner, r = above % rows;
    // The position in the data: that of the output, with the axis at element 0.
    int64_t offset = 0, left = at;
    for (int d = static_cast<int>(y.rank) - 1; d >= 0; --d) {
      if (d != axis) offset += left % y.shape[d] * x.stride[d];
      left /= y.shape[d];
    }
    const auto* p = reinterpret_cast<const uint8_t*>(x.data) + offset;
    const auto* weights = reinterpret_cast<const float*>(w.data) + r * bins;
    const uint32_t* band = row.scratch<uint32_t>() + 2 * r;
    float sum = 0.0f;
    for (uint32_t b = band[0]; b < band[1]; ++b)
      sum += *reinterpret_cast<const float*>(p + b * x.stride[axis]) * weights[b];
    reinterpret_cast<float*>(y.data)[at] = sum;
  }
};

}  // namespace stoker::own
