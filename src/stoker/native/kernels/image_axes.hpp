// SPDX-License-Identifier: Apache-2.0
// Axes of images in tensors, for kernels that take images of any layout.
#pragma once
#include <string>

#include "base/tensor.hpp"
#include "plan/check.hpp"

namespace stoker {

constexpr const char* kAxis = "the axis, -1: none";

// Axes of an image in a tensor; -1: the tensor does not have it.
struct ImageAxes {
  int32_t frame, height, width, channel;
};

// Require that every axis of input 0 is one of an image's, and only one.
inline void require_axes(const StepFacts& step, const ImageAxes& axes) {
  const int32_t rank = step.in_rank(0);
  uint32_t named = 0;
  int32_t count = 0;
  for (const int32_t axis : {axes.frame, axes.height, axes.width, axes.channel}) {
    if (axis == -1) continue;
    const std::string got = std::to_string(axis);
    step.require(axis >= 0 && axis < rank, "axes", "axes of a tensor with " + std::to_string(rank), got);
    step.require(!(named >> axis & 1), "axes", "each axis once", got + " twice");
    named |= uint32_t{1} << axis;
    ++count;
  }
  step.require(count == rank, "axes", "names for " + std::to_string(rank) + " axes", std::to_string(count));
}

// Return a tensor as a view with the four axes F, H, W and C.
inline View framed(const View& v, const ImageAxes& axes) {
  View out = v;
  out.rank = 4;
  const int32_t from[4] = {axes.frame, axes.height, axes.width, axes.channel};
  for (int i = 0; i < 4; ++i) {
    out.shape[i] = from[i] < 0 ? 1 : v.shape[from[i]];
    out.stride[i] = from[i] < 0 ? 0 : v.stride[from[i]];
  }
  return out;
}

// Return one frame, [H,W,C].
inline View frame(const View& v, int64_t f) {
  View out = v;
  out.rank = 3;
  out.data += f * v.stride[0];
  for (int i = 0; i < 3; ++i) {
    out.shape[i] = v.shape[i + 1];
    out.stride[i] = v.stride[i + 1];
  }
  return out;
}

// Call f(from, to) with the planes [H,W,C] of two images with the axes F, H, W and C, until it returns false. A plane has
// all channels if they are innermost in the tensor, and one channel otherwise.
template <class F>
inline bool each_plane(const View& from, const View& to, const ImageAxes& axes, F&& f) {
  const bool inner = axes.channel < 0 || axes.channel > axes.width;
  for (int64_t k = 0; k < from.shape[0]; ++k) {
    View a = frame(from, k), b = frame(to, k);
    if (inner) {
      if (!f(a, b)) return false;
      continue;
    }
    const int64_t channels = a.shape[2];
    a.shape[2] = b.shape[2] = 1;
    for (int64_t c = 0; c < channels; ++c, a.data += a.stride[2], b.data += b.stride[2])
      if (!f(a, b)) return false;
  }
  return true;
}

}  // namespace stoker
