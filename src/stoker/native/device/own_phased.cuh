// SPDX-License-Identifier: Apache-2.0
// Iteration of `griffin_lim`: spectra with given magnitudes and the phases of others.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: magnitudes, rebuilt spectra, those before, output. Numbers: the share of those before, whether phases are 0,
// whether the magnitudes are squared (kernels/transforms.cpp: Phased).
template <class Ports>
struct Phased {
  static constexpr int64_t kElements = 1024;  // of a block; also in ops/audio/griffin_lim.py

  static void apply(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &rebuilt = row.port(1), &before = row.port(2);
    const auto share = static_cast<float>(row.number(0));
    const bool zero = row.number(1) != 0, root = row.number(2) != 0;
    auto* to = reinterpret_cast<float*>(row.port(3).data);
    const int64_t frames = x.shape[1], n = x.shape[0] * frames;
    const int64_t begin = block * kElements, end = begin + kElements < n ? begin + kElements : n;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t k = quotient(i, frames), t = i - k * frames;
      const auto part = [&](const Port& p, int64_t offset) {
        return *reinterpret_cast<const float*>(p.data +
                                               static_cast<uint64_t>(k * p.stride[0] + t * p.stride[1] + offset));
      };
      const float given = part(x, 0), magnitude = root ? sqrtf(given) : given;
      float re = magnitude, im = 0.0f;
      if (!zero) {
        const float a = part(rebuilt, 0) - share * part(before, 0);
        const float b = part(rebuilt, rebuilt.stride[2]) - share * part(before, before.stride[2]);
        const float length = sqrtf(a * a + b * b) + 1e-16f;
        re = magnitude * (a / length);
        im = magnitude * (b / length);
      }
      to[2 * i] = re;
      to[2 * i + 1] = im;
    }
  }
};

}  // namespace stoker::own
