// SPDX-License-Identifier: Apache-2.0
// Frames of a signal that a block transforms: the part that `stft` and both kernels of `spectrogram` have in common.
#pragma once
#include "device/own.cuh"
#include "shared/border.hpp"

namespace stoker::own {

// Ports: signal, window, table (shared/fft.hpp). Numbers, from a first one on: frames, first sample of frame 0, points of
// the transform, step, whether to mirror the signal, whether to take the root, whether frames are the first axis.
struct Frames {
  int64_t frames, first;  // of the row; number of the block's first frame
  int32_t count;          // frames of the block
  int64_t start, step;    // first sample of the block's first frame; samples from one frame to the next one
  bool reflect, magnitude, by_time;
  const float *signal, *window, *table;
  int64_t samples, element;  // of the signal, and floats from one to the next
  int32_t length, before;    // of the window, and points of the transform before it

  Frames(const Row& row, uint32_t block, int number, int32_t points, int64_t most_of_block) {
    frames = static_cast<int64_t>(row.number(number));
    step = static_cast<int64_t>(row.number(number + 3));
    reflect = row.number(number + 4) != 0;
    magnitude = row.number(number + 5) != 0;
    by_time = row.number(number + 6) != 0;
    first = block * most_of_block;
    start = static_cast<int64_t>(row.number(number + 1)) + first * step;
    count = static_cast<int32_t>(frames - first < most_of_block ? frames - first : most_of_block);
    const Port &x = row.port(0), &w = row.port(1);
    signal = reinterpret_cast<const float*>(x.data);
    samples = x.shape[0];
    element = x.stride[0] / static_cast<int64_t>(sizeof(float));
    window = reinterpret_cast<const float*>(w.data);
    length = static_cast<int32_t>(w.shape[0]);
    before = (points - length) / 2;
    table = reinterpret_cast<const float*>(row.port(2).data);
  }
  // Sample i of the transform of a frame. `load` gives a sample of the signal.
  template <class Load>
  float sample(int32_t frame, int32_t i, Load&& load) const {
    const int32_t at = i - before;
    if (at < 0 || at >= length) return 0.0f;
    const int64_t from =
        border_position<int64_t>(start + frame * step + at, samples, reflect ? Border::Reflect101 : Border::Constant);
    return from < 0 ? 0.0f * window[at] : load(from) * window[at];
  }
  template <class Point>
  float power_of(Point x, float factor) const {
    const float power = (x.re * x.re + x.im * x.im) * factor;
    return magnitude ? sqrtf(power) : power;
  }
};

}  // namespace stoker::own
