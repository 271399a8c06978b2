// SPDX-License-Identifier: Apache-2.0
// Sharpness as in torchvision's tensor kernels, for bytes (torch/color.cpp) and floats (torch/float_color.cpp): an
// image is blended with its smoothed image. The outermost pixels are not smoothed.
#pragma once
#include <cstdint>

#include "base/tensor.hpp"
#include "filter/correlate.hpp"
#include "pixel/rows.hpp"
#include "torch/products.hpp"

namespace stoker::torch_color {

// Call blend(from, smoothed, count, to) for the inside of each row, and outermost(from, count, to) for the outermost
// pixels. The values are those of `src`, of type T, and of `dst`, whose pixels are contiguous. `products`: see
// torch/products.hpp. Return false if such an image cannot be smoothed.
template <class T, class Blend, class Outermost>
bool sharpen_rows(const View& src, bool products, const View& dst, Scratch& smooth, Scratch& work, Blend&& blend,
                  Outermost&& outermost) {
  const float edge = static_cast<float>(1.0 / 13.0), middle = static_cast<float>(5.0 / 13.0);
  const float weights[9] = {edge, edge, edge, edge, middle, edge, edge, edge, edge};
  View inner = dst;
  inner.dtype = DType::F32;
  inner.shape[0] -= 2;
  inner.shape[1] -= 2;
  inner.set_contiguous_strides();
  inner.data = smooth.get(static_cast<size_t>(inner.elements()) * sizeof(float));
  correlate::Window window{weights, 3, 3, 0, 0};
  window.fused = true;
  const auto filter = products ? torch_products::correlate : correlate::correlate;
  if (!filter(src, window, inner, work)) return false;
  const int64_t height = src.shape[0], channels = src.shape[2], n = src.shape[1] * channels;
  RowsOf<T> rows(src);
  for (int64_t y = 0; y < height; ++y) {
    const T* from = rows.row(y);
    T* to = reinterpret_cast<T*>(dst.data + y * dst.stride[0]);
    if (y == 0 || y + 1 == height) {
      outermost(from, n, to);
      continue;
    }
    outermost(from, channels, to);
    blend(from + channels, reinterpret_cast<const float*>(inner.data + (y - 1) * inner.stride[0]), n - 2 * channels,
          to + channels);
    outermost(from + n - channels, channels, to + n - channels);
  }
  return true;
}

}  // namespace stoker::torch_color
