// SPDX-License-Identifier: Apache-2.0
// `audio_resample` between rates that are known while planning: a thread computes an output.
#pragma once
#include "device/own.cuh"
#include "shared/phases.hpp"

namespace stoker::own {

// Ports: signal, weights [rows, taps], output. Numbers: the rates of output and input, without a common divisor. There are
// as many rows as phases, unless the weights are interpolated (kernels/signal_tables.cpp).
template <class Ports>
struct AudioResample {
  static constexpr int kSums = static_cast<int>(signal::kPartialSums);

  template <bool kInterpolated, class Load>
  static float sum(const float* weights, int64_t taps, float part, Load&& load) {
    float sums[kSums] = {};
    for (int64_t k = 0; k < taps; k += kSums) {
      STOKER_UNROLL for (int j = 0; j < kSums; ++j) {
        float weight = weights[k + j];
        if constexpr (kInterpolated) weight += (weights[taps + k + j] - weight) * part;
        sums[j] += load(k + j) * weight;
      }
    }
    STOKER_UNROLL for (int half = kSums / 2; half > 0; half /= 2) {
      STOKER_UNROLL for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
    }
    return sums[0];
  }

  static void outputs(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &w = row.port(1), &y = row.port(2);
    const int64_t channels = y.rank == 1 ? 1 : y.shape[1], i = int64_t{block} * kThreads + gpu::thread_index();
    if (i >= y.shape[0] * channels) return;
    const int64_t output = quotient(i, channels), channel = i - output * channels;
    const auto up = static_cast<int64_t>(row.number(0)), down = static_cast<int64_t>(row.number(1));
    // Output o is at input o * down / up, whose whole part repeats every `up` outputs.
    const int64_t periods = quotient(output, up), rest = (output - periods * up) * down, whole = quotient(rest, up);
    const int64_t fraction = rest - whole * up, n = x.shape[0], taps = w.shape[1];
    const int64_t from = periods * down + whole - (taps / 2 - 1);
    const auto* data = reinterpret_cast<const uint8_t*>(x.data) + (x.rank == 1 ? 0 : channel * x.stride[1]);
    const auto load = [&](int64_t k) {
      const int64_t at = from + k;
      return at >= 0 && at < n ? *reinterpret_cast<const float*>(data + at * x.stride[0]) : 0.0f;
    };
    const auto* weights = reinterpret_cast<const float*>(w.data);
    auto* to = reinterpret_cast<float*>(y.data);
    if (w.shape[0] == up) {
      to[i] = sum<false>(weights + fraction * taps, taps, 0.0f, load);
    } else {
      const double phase =
          static_cast<double>(fraction) / static_cast<double>(up) * static_cast<double>(signal::kInterpolatedPhases);
      const auto first = static_cast<int64_t>(phase);
      to[i] = sum<true>(weights + first * taps, taps, static_cast<float>(phase - static_cast<double>(first)), load);
    }
  }
};

}  // namespace stoker::own
