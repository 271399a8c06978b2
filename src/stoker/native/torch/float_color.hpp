// SPDX-License-Identifier: Apache-2.0
// Colour operations on floats as in torchvision's tensor kernels on CPUs, bit for bit: the operations of
// torch/color.hpp without the conversion to bytes. Values are expected to be 0 to 1, as in torchvision, and are clamped
// where torchvision clamps.
#pragma once
#include "base/tensor.hpp"
#include "torch/color.hpp"

namespace stoker::torch_float_color {

using torch_color::Generation;

// Vectorization of torch's loops that add a product to values. In blocks of this many values the product and the sum
// are fused. torch's compiler split the values after the last block: the first value, then whole groups of four with a
// rounded product, then the others, fused again. This happens in each thread's share, in the order of memory: [C,H,W],
// or [H,W,C] if `by_pixel`.
struct Blocks {
  int64_t size;
  bool by_pixel;
};

// Images are [H,W,C] of F32: `src` with any strides, `dst` contiguous. They must not overlap, and have three channels
// unless a function says otherwise.

void gray(Generation generation, const View& src, const View& dst);  // dst has one channel
void saturate(Generation generation, const View& src, double factor, const View& dst);
void hue(Generation generation, const View& src, double shift, const View& dst);
// Blend src with its smoothed image (the outermost pixels are not smoothed) into dst; one or three channels, at least 3
// x 3. `products`: one channel, added in the order of a matrix product (torch/products.hpp).
bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth,
             Scratch& work);
void autocontrast(Generation generation, const View& src, const View& dst);  // one or three channels
// One or three channels. `order` must be valid; `blocks` only matters to the second generation.
void contrast(Generation generation, const View& src, double factor, const torch_sum::Order& order,
              const Blocks& blocks, const View& dst, Scratch& work);

}  // namespace stoker::torch_float_color
