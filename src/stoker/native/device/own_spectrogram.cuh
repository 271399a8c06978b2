// SPDX-License-Identifier: Apache-2.0
// `spectrogram`: a block transforms a few frames.
#pragma once
#include "device/own_frames.cuh"
#include "device/own_transforms.cuh"

namespace stoker::own {

// Ports: those of Frames, output. Numbers: those of Frames, frames of a block, whether the block's memory is shared
// memory.
template <class Ports>
struct Spectrogram {
  struct Block : Frames {
    Transforms transforms;

    Block(const Row& row, uint32_t block)
        : Frames(row, block, 0, static_cast<int32_t>(row.number(2)), static_cast<int64_t>(row.number(7))),
          transforms(static_cast<int32_t>(row.number(2)), table, count) {
      transforms.memory =
          row.number(8) != 0 ? gpu::dynamic_shared<float>() : row.scratch<float>(transforms.bytes(first));
    }
    float sample(int32_t frame, int32_t i) const {
      return Frames::sample(frame, i, [&](int64_t from) { return signal[from * element]; });
    }
  };

  // Write the powers of a frame's pairs of bins into `to`.
  static void powers(const Block& b, FramePoints z, float* to, int32_t k) {
    const int32_t n = b.transforms.plan.points;
    if (b.transforms.plan.is_odd()) {
      if (k < b.transforms.plan.bins) to[k] = b.power_of(z.at(k), 1.0f);
      return;
    }
    if (k == 0) {
      const FramePoint x = z.at(0);
      to[0] = b.power_of(FramePoint{x.re + x.im, 0.0f}, 1.0f);
      to[n] = b.power_of(FramePoint{x.re - x.im, 0.0f}, 1.0f);
      return;
    }
    const float* w = b.table + b.transforms.plan.pair;
    FramePoint low, high;
    fft::real_pair(z.at(k), z.at(n - k), w[2 * k], w[2 * k + 1], low, high);
    to[k] = b.power_of(low, 0.25f);
    to[n - k] = b.power_of(high, 0.25f);
  }

  static void frames(const Row& row, uint32_t block) {
    const Block b(row, block);
    const Transforms& t = b.transforms;
    const bool odd = t.plan.is_odd();
    t.each(t.plan.points, [&](int32_t frame, int32_t i) {
      const FramePoints x = t.points(frame, 0);
      if (odd) x.set(i, {b.sample(frame, i), 0.0f});
      else x.set(i, {b.sample(frame, 2 * i), b.sample(frame, 2 * i + 1)});
    });
    const int at = t.run();
    // The other pair of arrays takes the powers, one frame after the other.
    t.each(odd ? t.plan.bins : t.plan.points / 2 + 1,
           [&](int32_t frame, int32_t k) { powers(b, t.points(frame, at), t.points(frame, 1 - at).re, k); });
    auto* out = reinterpret_cast<float*>(row.port(3).data);
    // Neighbouring threads write neighbouring elements.
    const auto bins = static_cast<uint32_t>(t.plan.bins), count = static_cast<uint32_t>(b.count);
    const uint32_t across = b.by_time ? bins : count;
    for (uint32_t i = gpu::thread_index(); i < count * bins; i += gpu::thread_count()) {
      const uint32_t slow = i / across, fast = i - slow * across, frame = b.by_time ? slow : fast;
      const uint32_t k = b.by_time ? fast : slow;
      const float value = t.points(static_cast<int32_t>(frame), 1 - at).re[k];
      if (b.by_time) out[(b.first + frame) * bins + k] = value;
      else out[k * b.frames + b.first + frame] = value;
    }
  }
};

}  // namespace stoker::own
