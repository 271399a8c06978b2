// SPDX-License-Identifier: Apache-2.0
// Normalization of floats by their own mean and deviation: sums as in device/own_reduce.cuh, then every element.
#pragma once
#include "device/own_reduce.cuh"

namespace stoker::own {

// Statistics are those along the axes of kRank whose bits are set in kGone, which are neighbours. Ports: data, result.
// Numbers: ddof, scale, shift, epsilon. A row's scratch memory: a mean and a variance per column, 8 bytes each, then
// 8 bytes per chunk of each column.
template <class Ports, uint32_t kGone, int kRank>
struct Normalize {
  static constexpr int64_t kElements = 2048;  // of a block; also in ops/generic/normalized_floats.py
  // The reductions get the ports of a reduction with a mean. They read the first one alone.
  struct Reduced {
    template <int kPort>
    using At = typename Ports::template At<0>;
  };
  using Means = Reduce<Reduced, static_cast<int>(fold::Reduction::Mean), kGone, kRank>;
  using Variances = Reduce<Reduced, static_cast<int>(fold::Reduction::Variance), kGone, kRank>;

  static double* means(const Row& row) { return row.scratch<double>(); }
  static double* variances(const Row& row) { return means(row) + Means::extent(row.port(0), false); }
  static uint8_t* partials(const Row& row) {
    return reinterpret_cast<uint8_t*>(variances(row) + Means::extent(row.port(0), false));
  }
  static void put_mean(const Row& row, int64_t column, double sum, int64_t count) {
    means(row)[column] = fold::averaged<fold::Reduction::Mean>(sum, count, 0.0);
  }
  static void put_variance(const Row& row, int64_t column, double sum, int64_t count) {
    variances(row)[column] = fold::averaged<fold::Reduction::Variance>(sum, count, row.number(0));
  }

  static void sums(const Row& row, uint32_t block) {
    STOKER_SHARED(typename Means::Lanes, lanes);
    Means::reduce_chunks(
        row, block, lanes, partials(row), [](int64_t) { return 0.0; },
        [&](int64_t column, double sum, int64_t count) { put_mean(row, column, sum, count); });
  }
  static void joined_sums(const Row& row, uint32_t block) {
    STOKER_SHARED(typename Means::Lanes, lanes);
    Means::reduce_partials(row, block, lanes, partials(row),
                           [&](int64_t column, double sum, int64_t count) { put_mean(row, column, sum, count); });
  }
  static void squares(const Row& row, uint32_t block) {
    STOKER_SHARED(typename Variances::Lanes, lanes);
    Variances::reduce_chunks(
        row, block, lanes, partials(row), [&](int64_t column) { return means(row)[column]; },
        [&](int64_t column, double sum, int64_t count) { put_variance(row, column, sum, count); });
  }
  static void joined_squares(const Row& row, uint32_t block) {
    STOKER_SHARED(typename Variances::Lanes, lanes);
    Variances::reduce_partials(row, block, lanes, partials(row), [&](int64_t column, double sum, int64_t count) {
      put_variance(row, column, sum, count);
    });
  }

  static void result(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &y = row.port(1);
    const auto scale = static_cast<float>(row.number(1)), shift = static_cast<float>(row.number(2));
    const auto epsilon = static_cast<float>(row.number(3));
    int64_t elements = 1;
    for (int d = 0; d < kRank; ++d) elements *= y.shape[d];
    const int64_t begin = block * kElements, end = begin + kElements < elements ? begin + kElements : elements;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t offset = 0, left = i, column = 0, apart = 1;
      STOKER_UNROLL for (int d = kRank - 1; d >= 0; --d) {
        const int64_t above = quotient(left, y.shape[d]), at = left - above * y.shape[d];
        left = above;
        offset += at * x.stride[d];
        if (kGone >> d & 1) continue;
        column += at * apart;
        apart *= y.shape[d];
      }
      const float variance = static_cast<float>(variances(row)[column]) + epsilon;
      const float factor = variance > 0.0f ? scale / sqrtf(variance) : 0.0f;
      const float v = *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(offset));
      reinterpret_cast<float*>(y.data)[i] = (v - static_cast<float>(means(row)[column])) * factor + shift;
    }
  }
};

}  // namespace stoker::own
