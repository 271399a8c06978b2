// SPDX-License-Identifier: Apache-2.0
// `stft`: complex spectra of frames; a block transforms a few of them.
#pragma once
#include "device/own_frames.cuh"
#include "device/own_transforms.cuh"

namespace stoker::own {

// Ports: those of Frames, output. Numbers: those of Frames, frames of a block, whether the block's memory is shared
// memory.
template <class Ports>
struct Stft {
  static void frames(const Row& row, uint32_t block) {
    const auto nfft = static_cast<int32_t>(row.number(2));
    const Frames f(row, block, 0, nfft, static_cast<int64_t>(row.number(7)));
    Transforms t(nfft, f.table, f.count);
    t.memory = row.number(8) != 0 ? gpu::dynamic_shared<float>() : row.scratch<float>(t.bytes(f.first));
    t.load([&](int32_t frame, int32_t i) {
      return f.sample(frame, i, [&](int64_t from) { return f.signal[from * f.element]; });
    });
    const int at = t.run();
    t.each(t.pairs(), [&](int32_t frame, int32_t k) {
      const FramePoints to = t.points(frame, 1 - at);
      t.bins_of(t.points(frame, at), k, [&](int32_t bin, FramePoint x) { to.set(bin, x); });
    });
    auto* out = reinterpret_cast<FramePoint*>(row.port(3).data);
    t.each_across(t.plan.bins, [&](int32_t frame, int32_t k) {
      out[k * f.frames + f.first + frame] = t.points(frame, 1 - at).at(k);
    });
  }
};

}  // namespace stoker::own
