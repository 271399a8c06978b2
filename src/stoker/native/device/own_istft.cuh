// SPDX-License-Identifier: Apache-2.0
// `istft`: a block transforms a few spectra back; then every sample is the sum of the frames that cover it.
#pragma once
#include "device/own_transforms.cuh"

namespace stoker::own {

// Ports: spectra, window, table (shared/fft.hpp), output. Numbers: first sample of the first frame's window, points of
// the transform, step, frames of a block, whether the block's memory is shared memory. Memory of a row: the samples of
// all frames, then that of the transforms if it is not shared.
template <class Ports>
struct Istft {
  static constexpr int64_t kElements = 1024;     // samples of a block; also in ops/audio/_transforms.py
  static constexpr float kLeastWeight = 1e-11f;  // also in kernels/transforms.cpp

  // Write the points that the forward transform turns into the samples, with real and imaginary parts exchanged.
  static void load(const Transforms& t, FramePoints in, FramePoints x, int32_t k) {
    const int32_t n = t.plan.points;
    if (t.plan.is_odd()) {
      const FramePoint a = in.at(k);
      if (k == 0) {
        x.set(0, {0.0f, a.re});
        return;
      }
      x.set(k, {a.im, a.re});
      x.set(n - k, {-a.im, a.re});
      return;
    }
    t.inverse_pair(in.at(k), in.at(n - k), x, k);
  }

  static void frames(const Row& row, uint32_t block) {
    const Port& in = row.port(0);
    const auto nfft = static_cast<int32_t>(row.number(1));
    const auto most = static_cast<int64_t>(row.number(3));
    const int64_t frames = in.shape[1], first = block * most;
    Transforms t(nfft, reinterpret_cast<const float*>(row.port(2).data),
                 static_cast<int32_t>(frames - first < most ? frames - first : most));
    auto* parts = row.scratch<float>();
    t.memory = row.number(4) != 0
                   ? gpu::dynamic_shared<float>()
                   : row.scratch<float>(frames * nfft * static_cast<int64_t>(sizeof(float)) + t.bytes(first));
    t.each_across(t.plan.bins, [&](int32_t frame, int32_t k) {
      const int64_t from = k * in.stride[0] + (first + frame) * in.stride[1];
      const auto part = [&](int64_t offset) {
        return *reinterpret_cast<const float*>(in.data + static_cast<uint64_t>(from + offset));
      };
      t.points(frame, 1).set(k, {part(0), part(in.stride[2])});
    });
    const bool odd = t.plan.is_odd();
    t.each(t.pairs(), [&](int32_t frame, int32_t k) { load(t, t.points(frame, 1), t.points(frame, 0), k); });
    const int at = t.run();
    const float scale = 1.0f / static_cast<float>(nfft);
    t.each(t.plan.points, [&](int32_t frame, int32_t i) {
      const FramePoint a = t.points(frame, at).at(i);
      float* to = parts + (first + frame) * nfft;
      if (odd) {
        to[i] = a.im * scale;
      } else {
        to[2 * i] = a.im * scale;
        to[2 * i + 1] = a.re * scale;
      }
    });
  }

  static void join(const Row& row, uint32_t block) {
    const Port& out = row.port(3);
    const auto start = static_cast<int64_t>(row.number(0)), nfft = static_cast<int64_t>(row.number(1)),
               step = static_cast<int64_t>(row.number(2));
    const int64_t n = out.shape[0], frames = row.port(0).shape[1], length = row.port(1).shape[0];
    const auto* window = reinterpret_cast<const float*>(row.port(1).data);
    const auto* parts = row.scratch<const float>() + (nfft - length) / 2;
    auto* y = reinterpret_cast<float*>(out.data);
    const int64_t begin = block * kElements, end = begin + kElements < n ? begin + kElements : n;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t at = i - start, newest = at < 0 ? -1 : quotient(at, step);
      const int64_t last = newest < frames ? newest : frames - 1;
      int64_t t = at < length ? 0 : quotient(at - length, step) + 1;  // the first frame that covers the sample
      float sum = 0.0f, weight = 0.0f;
      for (; t <= last; ++t) {
        const int64_t j = at - t * step;
        sum += parts[t * nfft + j] * window[j];
        weight += window[j] * window[j];
      }
      y[i] = weight > kLeastWeight ? sum / weight : sum;
    }
  }
};

}  // namespace stoker::own
