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
  // Write a pair of a frame's bins into `to`.
  static void bins(const Transforms& t, FramePoints z, FramePoints to, int32_t k) {
    const int32_t n = t.plan.points;
    if (t.plan.is_odd()) {
      if (k < t.plan.bins) to.set(k, z.at(k));
      return;
    }
    if (k == 0) {
      const FramePoint x = z.at(0);
      to.set(0, {x.re + x.im, 0.0f});
      to.set(n, {x.re - x.im, 0.0f});
      return;
    }
    const float* w = t.table + t.plan.pair;
    FramePoint low, high;
    fft::real_pair(z.at(k), z.at(n - k), w[2 * k], w[2 * k + 1], low, high);
    to.set(k, {low.re * 0.5f, low.im * 0.5f});
    to.set(n - k, {high.re * 0.5f, high.im * 0.5f});
  }

  static void frames(const Row& row, uint32_t block) {
    const auto nfft = static_cast<int32_t>(row.number(2));
    const Frames f(row, block, 0, nfft, static_cast<int64_t>(row.number(7)));
    Transforms t(nfft, f.table, f.count);
    t.memory = row.number(8) != 0 ? gpu::dynamic_shared<float>() : row.scratch<float>(t.bytes(f.first));
    const auto sample = [&](int32_t frame, int32_t i) {
      return f.sample(frame, i, [&](int64_t from) { return f.signal[from * f.element]; });
    };
    const bool odd = t.plan.is_odd();
    t.each(t.plan.points, [&](int32_t frame, int32_t i) {
      const FramePoints x = t.points(frame, 0);
      if (odd) x.set(i, {sample(frame, i), 0.0f});
      else x.set(i, {sample(frame, 2 * i), sample(frame, 2 * i + 1)});
    });
    const int at = t.run();
    t.each(odd ? t.plan.bins : t.plan.points / 2 + 1,
           [&](int32_t frame, int32_t k) { bins(t, t.points(frame, at), t.points(frame, 1 - at), k); });
    auto* out = reinterpret_cast<FramePoint*>(row.port(3).data);
    t.each_across(t.plan.bins, [&](int32_t frame, int32_t k) {
      out[k * f.frames + f.first + frame] = t.points(frame, 1 - at).at(k);
    });
  }
};

}  // namespace stoker::own
