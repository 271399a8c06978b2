// SPDX-License-Identifier: Apache-2.0
// Frames of a signal that a block transforms: the part that both kernels of `spectrogram` have in common.
#pragma once
#include "device/own.cuh"
#include "shared/border.hpp"

namespace stoker::own {

// Frames that a block transforms together.
struct FrameGroup {
  int64_t first, start;  // number of the first frame, and its first sample
  int32_t count;
};

// All frames of a row. Ports: signal, window, table (shared/fft.hpp). Numbers, from a first one on: frames, first sample
// of frame 0, points of the transform, step, whether to mirror the signal, whether to take the root, whether frames are
// the first axis.
struct Frames {
  int64_t frames, begin, step;  // frames of the row; first sample of frame 0; samples from one frame to the next one
  bool reflect, magnitude, by_time;
  const float *signal, *window, *table;
  int64_t samples, element;  // of the signal, and floats from one to the next
  int32_t length, before;    // of the window, and points of the transform before it

  void read(const Row& row, int number, int32_t points) {
    frames = static_cast<int64_t>(row.number(number));
    begin = static_cast<int64_t>(row.number(number + 1));
    step = static_cast<int64_t>(row.number(number + 3));
    reflect = row.number(number + 4) != 0;
    magnitude = row.number(number + 5) != 0;
    by_time = row.number(number + 6) != 0;
    const Port &x = row.port(0), &w = row.port(1);
    signal = reinterpret_cast<const float*>(x.data);
    samples = x.shape[0];
    element = x.stride[0] / static_cast<int64_t>(sizeof(float));
    window = reinterpret_cast<const float*>(w.data);
    length = static_cast<int32_t>(w.shape[0]);
    before = (points - length) / 2;
    table = reinterpret_cast<const float*>(row.port(2).data);
  }
  // Return group `number` of `most` frames each; its count is 0 or less after the last group.
  FrameGroup group(int64_t number, int64_t most) const {
    const int64_t first = number * most, left = frames - first;
    return {first, begin + first * step, static_cast<int32_t>(left < most ? (left < 0 ? 0 : left) : most)};
  }
  // Return sample i of the transform of a group's frame. `load` gives a sample of the signal.
  template <class Load>
  float sample(const FrameGroup& group, int32_t frame, int32_t i, Load&& load) const {
    const int32_t at = i - before;
    if (at < 0 || at >= length) return 0.0f;
    const int64_t from = border_position<int64_t>(group.start + frame * step + at, samples,
                                                  reflect ? Border::Reflect101 : Border::Constant);
    return from < 0 ? 0.0f * window[at] : load(from) * window[at];
  }
  template <class Point>
  float power_of(Point x, float factor) const {
    const float power = (x.re * x.re + x.im * x.im) * factor;
    return magnitude ? sqrtf(power) : power;
  }
};

}  // namespace stoker::own
