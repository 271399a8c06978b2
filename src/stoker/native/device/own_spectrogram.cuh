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

  static void frames(const Row& row, uint32_t block) {
    const Block b(row, block);
    const Transforms& t = b.transforms;
    t.load([&](int32_t frame, int32_t i) { return b.sample(frame, i); });
    const int at = t.run();
    // The other pair of arrays takes the powers, one frame after the other.
    t.each(t.pairs(), [&](int32_t frame, int32_t k) {
      float* to = t.points(frame, 1 - at).re;
      t.pair_of(t.points(frame, at), k,
                [&](int32_t bin, FramePoint x, float factor) { to[bin] = b.power_of(x, factor * factor); });
    });
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
