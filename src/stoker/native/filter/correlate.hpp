// SPDX-License-Identifier: Apache-2.0
// Correlation of an image with a small window of weights, summed in float32.
#pragma once
#include "base/tensor.hpp"
#include "shared/border.hpp"

namespace stoker::correlate {

struct Window {
  const float* weights;  // height x width, rows first
  int64_t height, width;
  int64_t top, left;  // offset of the window's first element above and left of the output position
  Border border = Border::Reflect101;
  float fill = 0;
  // True: sum = fma(value, weight, sum), as in torch's convolutions on CPUs; else the product and the sum are rounded
  // separately.
  bool fused = false;
};

// dst[y,x] = sum over (i,j) of src[y - top + i, x - left + j] * weights[i,j], added in the order of the weights to 0,
// rounded half to even and saturated to dst's type. src and dst: [H,W,C] with any strides, of U8, U16, I8, I16, F16 or
// F32; they must not overlap, and may differ in height and width.
//
// Return false, with dst untouched, for other types or ranks, a window without elements, or an empty source with a
// border mode that repeats its edge.
bool correlate(const View& src, const Window& window, const View& dst, Scratch& scratch);

// Correlate with a row of weights, and the float32 result with a column of them, as two calls of correlate() do, without
// memory for a whole image in between. Return false as correlate() does, and for windows of other shapes or with a
// constant border.
bool correlate_twice(const View& src, const Window& across, const Window& down, const View& dst, Scratch& scratch);

// Return the sum of two such pairs of correlations in dst: of across[0] and down[0], and of across[1] and down[1]. The
// windows are centred, and edges are reflected (reflect_101). The vertical sums of the first pair are continued with those
// of the second one.
bool correlate_sum(const View& src, const Window (&across)[2], const Window (&down)[2], const View& dst,
                   Scratch& scratch);

}  // namespace stoker::correlate
