// SPDX-License-Identifier: Apache-2.0
// Colours of floats as torchvision's tensor kernels change them with torch on CPUs, bit for bit: what torch_color.hpp
// does, without bytes. Values are meant to be 0 to 1, as torchvision has them, and are cut off there where it does.
#pragma once
#include "tensor.hpp"
#include "torch_color.hpp"

namespace stoker::torch_float_color {

using torch_color::Generation;

// Where torch adds a product of two numbers to values, it has one rounding, in blocks of so many values. What is left
// behind the last block its compiler has taken apart: the first value, then whole fours with a product that was rounded
// before, then the others with one rounding again. In each of its threads' shares, in the order of memory: [C,H,W], or
// [H,W,C] if `by_pixel`.
struct Blocks {
  int64_t size;
  bool by_pixel;
};

// Images are [H,W,C] of F32: `src` with any strides, `dst` contiguous. They must not overlap. Three channels where not said.

void gray(Generation generation, const View& src, const View& dst);  // to one channel
void saturate(Generation generation, const View& src, double factor, const View& dst);
void hue(Generation generation, const View& src, double shift, const View& dst);
// dst = src blended with itself smoothed (but for the outermost pixels); one or three channels, at least 3 x 3.
// `products`: one channel, in the order of a product of matrices (torch_products.hpp).
bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth,
             Scratch& work);
void autocontrast(Generation generation, const View& src, const View& dst);  // one or three channels
// One or three channels; `order` must be valid, and `blocks` matter to the second generation.
void contrast(Generation generation, const View& src, double factor, const torch_sum::Order& order, const Blocks& blocks,
              const View& dst, Scratch& work);

}  // namespace stoker::torch_float_color
