// SPDX-License-Identifier: Apache-2.0
// `loudness`: a thread for each segment of a channel; then the blocks of the row, and their mean.
#pragma once
#include "device/own.cuh"
#include "shared/loudness.hpp"

namespace stoker::own {

// Ports: signal, output. Numbers: the sampling rate. Memory of a row: the sums of all hops by channel, then the powers and
// the levels of all blocks.
template <class Ports>
struct Loudness {
  static loudness::Meter meter_of(const Row& row) { return {row.number(0), row.port(0).shape[0]}; }
  static int64_t channels_of(const Row& row) { return row.port(0).rank == 1 ? 1 : row.port(0).shape[1]; }

  static void segments(const Row& row, uint32_t block) {
    const loudness::Meter meter = meter_of(row);
    const Port& x = row.port(0);
    const int64_t task = block * int64_t{gpu::thread_count()} + gpu::thread_index();
    const int64_t channel = quotient(task, meter.segments), hop = (task - channel * meter.segments) * loudness::kHops;
    if (channel >= channels_of(row)) return;
    const auto* from = reinterpret_cast<const uint8_t*>(x.data) + (x.rank == 1 ? 0 : channel * x.stride[1]);
    const auto sample = [&](int64_t i) {
      return i < 0 ? 0.0 : static_cast<double>(*reinterpret_cast<const float*>(from + i * x.stride[0]));
    };
    loudness::Weighting<double> filter;
    int64_t i = meter.edge(hop) - meter.warm_up;
    for (const int64_t begin = meter.edge(hop); i < begin; ++i) filter(meter, sample(i));
    for (int64_t h = hop; h < hop + loudness::kHops && h < meter.hops; ++h) {
      double sum = 0;
      for (const int64_t end = meter.edge(h + 1); i < end; ++i) {
        const double y = filter(meter, sample(i));
        sum += y * y;
      }
      row.scratch<double>()[channel * meter.hops + h] = sum;
    }
  }

  static void mean(const Row& row, uint32_t) {
    const loudness::Meter meter = meter_of(row);
    const int64_t channels = channels_of(row);
    const auto* sums = row.scratch<const double>();
    auto* powers = row.scratch<double>(channels * meter.hops * static_cast<int64_t>(sizeof(double)));
    double* const levels = powers + meter.blocks;
    const auto power = [&](int64_t h) {
      double all = 0;
      for (int64_t k = 0; k < channels; ++k) all += loudness::channel_weight(k) * sums[k * meter.hops + h];
      return all;
    };
    for (int64_t j = gpu::thread_index(); j < meter.blocks; j += gpu::thread_count()) {
      double total = 0;
      for (int64_t h = j; h < j + loudness::kHops; ++h) total += power(h);
      powers[j] = total / meter.block_samples();
      levels[j] = loudness::lufs(powers[j]);
    }
    gpu::block_barrier();
    if (gpu::thread_index() == 0)
      *reinterpret_cast<double*>(row.port(1).data) = loudness::gated(powers, levels, meter.blocks);
  }
};

}  // namespace stoker::own
