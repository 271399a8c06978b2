// SPDX-License-Identifier: Apache-2.0
// Correlation of an image with a small window of weights, summed in float32.
#pragma once
#include "border.hpp"
#include "tensor.hpp"

namespace stoker::correlate {

struct Window {
  const float* weights;  // height x width, rows first
  int64_t height, width;
  int64_t top, left;  // the window's first element lies so far above and left of the output's position
  Border border = Border::Reflect101;
  float fill = 0;
  // True: sum = fma(value, weight, sum), as torch's convolutions on CPUs do; else product and sum are rounded.
  bool fused = false;
};

// dst[y,x] = sum over (i,j) of src[y - top + i, x - left + j] * weights[i,j], taken in the order of the weights from 0
// on, rounded half to even and saturated to dst's type. src and dst: [H,W,C] with any strides, of U8, U16, I8, I16,
// F16 or F32; they must not overlap, and may differ in height and width.
//
// Returns false, with dst untouched, for other types or ranks, a window without elements, or an empty source whose
// edge would be repeated.
bool correlate(const View& src, const Window& window, const View& dst, Scratch& scratch);

}  // namespace stoker::correlate
