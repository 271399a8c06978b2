// SPDX-License-Identifier: Apache-2.0
// Weighted sums over the elements of an axis: a thread per sum, in the order of the elements.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Row of weights in bands: the first bin, the bin after the last one, and the weights between them.
struct Band {
  const float* weights;
  int32_t begin, end;

  Band(const Port& port, int64_t row, int32_t bins) {
    const auto width = static_cast<int32_t>(port.shape[1]);
    const float* all = reinterpret_cast<const float*>(port.data) + row * width;
    weights = all + 2;
    begin = static_cast<int32_t>(all[0]);
    end = static_cast<int32_t>(all[1]);
    if (begin < 0 || end > bins || end - begin > width - 2) end = begin = 0;  // a table that no operator makes
  }
};

// Ports: data, weights [rows, 2 + widest band], output. Numbers: none but the axis.
template <class Ports>
struct Project {
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
    const int64_t rows = w.shape[0], above = quotient(at, inner), r = above - quotient(above, rows) * rows;
    // The position in the data: that of the output, with the axis at element 0.
    int64_t offset = 0, left = at;
    for (int d = static_cast<int>(y.rank) - 1; d >= 0; --d) {
      const int64_t next = quotient(left, y.shape[d]);
      if (d != axis) offset += (left - next * y.shape[d]) * x.stride[d];
      left = next;
    }
    const auto* p = reinterpret_cast<const uint8_t*>(x.data) + offset;
    const Band band(w, r, static_cast<int32_t>(x.shape[axis]));
    const int64_t apart = x.stride[axis];
    p += band.begin * apart;
    float sum = 0.0f;
    for (int32_t b = 0; b < band.end - band.begin; ++b, p += apart)
      sum += *reinterpret_cast<const float*>(p) * band.weights[b];
    reinterpret_cast<float*>(y.data)[at] = sum;
  }
};

}  // namespace stoker::own
