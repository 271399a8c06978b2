// SPDX-License-Identifier: Apache-2.0
// `audio_resample` between rates that differ by row: the values of the row's filter, its weights, then the outputs.
#pragma once
#include "device/own_audioresample.cuh"
#include "shared/resample_filter.hpp"

namespace stoker::own {

// Ports: signal, output. Numbers: two that only the CPU's kernel reads, those of resample_filter, whether the filter is
// DALI's. Memory of a row: the values in double, then the weights.
template <class Ports>
struct ResampleRow {
  static constexpr int64_t kValues = 1024;  // of a block; also in ops/audio/audio_resample.py

  static int64_t number(const Row& row, int i) { return static_cast<int64_t>(row.number(2 + i)); }
  static int64_t taps(const Row& row) { return number(row, 2); }
  static int64_t rows(const Row& row) { return number(row, 3); }
  static signal::SincShape shape_of(const Row& row) {
    return {row.number(8), row.number(9), row.number(10), row.number(11), row.number(12) != 0};
  }
  static float* weights_of(const Row& row) {
    return row.scratch<float>(rows(row) * taps(row) * static_cast<int64_t>(sizeof(double)));
  }

  static void values(const Row& row, uint32_t block) {
    const signal::SincShape shape = shape_of(row);
    const int64_t each = taps(row), all = rows(row) * each, begin = block * kValues;
    const int64_t end = begin + kValues < all ? begin + kValues : all;
    auto* to = row.scratch<double>();
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t phase = quotient(i, each);
      to[i] = shape.tap(i - phase * each, each / 2 - 1, phase, number(row, 4));
    }
  }

  static void weights(const Row& row, uint32_t block) {
    const int64_t phase = int64_t{block} * kThreads + gpu::thread_index(), each = taps(row);
    if (phase >= rows(row)) return;
    const auto* from = row.scratch<const double>() + phase * each;
    auto* to = weights_of(row) + phase * each;
    double sum = 0;
    for (int64_t k = 0; k < each; ++k) sum += from[k];
    const double scale = shape_of(row).scale(sum);
    for (int64_t k = 0; k < each; ++k) to[k] = static_cast<float>(from[k] * scale);
  }

  static void outputs(const Row& row, uint32_t block) {
    const ResampleWeights weights{weights_of(row), taps(row), number(row, 5) != 0};
    resample_block(resampled(row.port(0), row.port(1), number(row, 0), number(row, 1), weights), block);
  }
};

}  // namespace stoker::own
