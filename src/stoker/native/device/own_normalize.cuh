// SPDX-License-Identifier: Apache-2.0
// Normalization of floats by their own mean and deviation: sums as in device/own_reduce.cuh, then every element.
#pragma once
#include "device/own_reduce.cuh"

namespace stoker::own {

// Statistics are those along the axes of kRank whose bits are set in kGone, which are neighbours. Ports: data, result.
// Numbers: ddof, scale, shift, epsilon. A row with columns of one chunk is one pass, `whole`; others are the rest. Their
// scratch memory: a mean and a variance per column, 8 bytes each, then
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
    means(row)[column] = fold::averaged_or_zero<fold::Reduction::Mean>(sum, count, 0.0);
  }
  static void put_variance(const Row& row, int64_t column, double sum, int64_t count) {
    variances(row)[column] = fold::averaged_or_zero<fold::Reduction::Variance>(sum, count, row.number(0));
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

  // Return the value of the first lane of each warp to all its lanes.
  static double shared_by_warp(typename Means::Lanes& lanes, double value) {
    const uint32_t thread = gpu::thread_index(), first = thread - thread % gpu::kWarp;
    if (thread == first) lanes[thread] = value;
    gpu::warp_barrier();
    const double shared = lanes[first];
    gpu::warp_barrier();
    return shared;
  }

  // All of columns with one chunk: a warp per column, whose numbers come from the cache after the first sum.
  static void whole(const Row& row, uint32_t block) {
    STOKER_SHARED(typename Means::Lanes, lanes);
    const Port &x = row.port(0), &y = row.port(1);
    const int64_t each = Means::extent(x, true), columns = Means::extent(x, false);
    const int64_t column = block * Means::kTasks + gpu::thread_index() / gpu::kWarp, end = column < columns ? each : 0;
    const auto at = static_cast<uint64_t>(column < columns ? column : 0);
    const auto* from = reinterpret_cast<const uint8_t*>(x.data) + Means::offset(x, false, at);
    auto* to = reinterpret_cast<uint8_t*>(y.data) + Means::offset(y, false, at);
    double sum = Means::joined(lanes, Means::template lane_of<uint32_t>(from, x, 0, end, 0.0));
    const double mean = shared_by_warp(lanes, fold::averaged_or_zero<fold::Reduction::Mean>(sum, each, 0.0));
    sum = Variances::joined(lanes, Variances::template lane_of<uint32_t>(from, x, 0, end, mean));
    const double squares = fold::averaged_or_zero<fold::Reduction::Variance>(sum, each, row.number(0));
    const float factor = factor_of(row, shared_by_warp(lanes, squares)), middle = static_cast<float>(mean);
    const auto shift = static_cast<float>(row.number(2));
    auto i = static_cast<uint32_t>(gpu::thread_index() % gpu::kWarp);
    if (Means::is_dense(x) && Means::is_dense(y)) {
      constexpr uint32_t kAhead = 8;
      const auto* numbers = reinterpret_cast<const float*>(from);
      for (; i + (kAhead - 1) * gpu::kWarp < end; i += kAhead * gpu::kWarp) {
        float v[kAhead];
        STOKER_UNROLL for (uint32_t k = 0; k < kAhead; ++k) v[k] = numbers[i + k * gpu::kWarp];
        STOKER_UNROLL for (uint32_t k = 0; k < kAhead; ++k) reinterpret_cast<float*>(to)[i + k * gpu::kWarp] =
            (v[k] - middle) * factor + shift;
      }
    }
    for (; i < end; i += gpu::kWarp) {
      const float v = *reinterpret_cast<const float*>(from + Means::offset(x, true, i));
      *reinterpret_cast<float*>(to + Means::offset(y, true, i)) = (v - middle) * factor + shift;
    }
  }

  static float factor_of(const Row& row, double squares) {
    const float variance = static_cast<float>(squares) + static_cast<float>(row.number(3));
    return variance > 0.0f ? static_cast<float>(row.number(1)) / sqrtf(variance) : 0.0f;
  }

  static void result(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &y = row.port(1);
    const auto shift = static_cast<float>(row.number(2));
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
      const float factor = factor_of(row, variances(row)[column]);
      const float v = *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(offset));
      reinterpret_cast<float*>(y.data)[i] = (v - static_cast<float>(means(row)[column])) * factor + shift;
    }
  }
};

}  // namespace stoker::own
