// SPDX-License-Identifier: Apache-2.0
// `audio_resample` between rates that are known while planning: a thread computes an output.
#pragma once
#include "device/own.cuh"
#include "shared/phases.hpp"

namespace stoker::own {

constexpr int kResampleSums = static_cast<int>(signal::kPartialSums);

template <bool kInterpolated, class Load>
inline float resample_sum(const float* weights, int64_t taps, float part, Load&& load) {
  float sums[kResampleSums] = {};
  for (int64_t k = 0; k < taps; k += kResampleSums) {
    STOKER_UNROLL for (int j = 0; j < kResampleSums; ++j) {
      float weight = weights[k + j];
      if constexpr (kInterpolated) weight += (weights[taps + k + j] - weight) * part;
      sums[j] += load(k + j) * weight;
    }
  }
  STOKER_UNROLL for (int half = kResampleSums / 2; half > 0; half /= 2) {
    STOKER_UNROLL for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

// Weights of all phases, [rows, taps].
struct ResampleWeights {
  const float* weights;
  int64_t taps;
  bool interpolated;
};

// Compute the outputs of a block, a thread for each. Output o is at input o * down / up.
inline void resample_outputs(const Port& x, const Port& y, uint32_t block, int64_t up, int64_t down,
                             const ResampleWeights& w) {
  const int64_t channels = y.rank == 1 ? 1 : y.shape[1], i = int64_t{block} * kThreads + gpu::thread_index();
  if (i >= y.shape[0] * channels) return;
  const int64_t output = quotient(i, channels), channel = i - output * channels;
  // The whole part of a position repeats every `up` outputs.
  const int64_t periods = quotient(output, up), rest = (output - periods * up) * down, whole = quotient(rest, up);
  const int64_t fraction = rest - whole * up, n = x.shape[0], taps = w.taps;
  const int64_t from = periods * down + whole - (taps / 2 - 1);
  const auto* data = reinterpret_cast<const uint8_t*>(x.data) + (x.rank == 1 ? 0 : channel * x.stride[1]);
  const auto load = [&](int64_t k) {
    const int64_t at = from + k;
    return at >= 0 && at < n ? *reinterpret_cast<const float*>(data + at * x.stride[0]) : 0.0f;
  };
  auto* to = reinterpret_cast<float*>(y.data);
  if (!w.interpolated) {
    to[i] = resample_sum<false>(w.weights + fraction * taps, taps, 0.0f, load);
  } else {
    const double phase =
        static_cast<double>(fraction) / static_cast<double>(up) * static_cast<double>(signal::kInterpolatedPhases);
    const auto first = static_cast<int64_t>(phase);
    to[i] = resample_sum<true>(w.weights + first * taps, taps, static_cast<float>(phase - static_cast<double>(first)),
                               load);
  }
}

// Ports: signal, weights [rows, taps], output. Numbers: the rates of output and input, without a common divisor. There are
// as many rows as phases, unless the weights are interpolated (kernels/signal_tables.cpp).
template <class Ports>
struct AudioResample {
  static void outputs(const Row& row, uint32_t block) {
    const Port& w = row.port(1);
    const auto up = static_cast<int64_t>(row.number(0)), down = static_cast<int64_t>(row.number(1));
    resample_outputs(row.port(0), row.port(2), block, up, down,
                     {reinterpret_cast<const float*>(w.data), w.shape[1], w.shape[0] != up});
  }
};

}  // namespace stoker::own
