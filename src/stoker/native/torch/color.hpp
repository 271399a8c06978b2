// SPDX-License-Identifier: Apache-2.0
// Colour operations on bytes as in torchvision's tensor kernels on CPUs, bit for bit.
//
// Sums are float32; where torch adds a product (`add` with alpha, convolutions) it uses a fused multiply-add.
#pragma once
#include "base/tensor.hpp"
#include "shared/torch_color_point.hpp"
#include "shared/torch_sum.hpp"

namespace stoker::torch_color {

// The two generations of torchvision's transforms (`transforms` and `transforms.v2`). The first rounds every product
// before it adds it, and computes grey values as bytes.
enum class Generation : uint8_t { First = 1, Second = 2 };

// Images are [H,W,C] of U8: `src` with any strides, `dst` with contiguous channels. They have three channels unless a
// function says otherwise.

void gray(Generation generation, const View& src, const View& dst);  // dst has one channel
void saturate(Generation generation, const View& src, double factor, const View& dst);
void hue(Generation generation, const View& src, double shift, const View& dst);
// Blend src with its smoothed image (the outermost pixels are not smoothed) into dst, which has contiguous pixels; one
// or three channels, at least 3 x 3. `products`: one channel, added in the order of a matrix product
// (torch/products.hpp).
bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth,
             Scratch& work);

// Fill a table for all values (shared/torch_color_point.hpp computes the other tables from histograms). One or three
// channels. `order` describes how torch adds up more than torch_sum::kExactBytes grey values; for fewer it does not
// matter.
void contrast_table(Generation generation, const View& src, double factor, const torch_sum::Order& order,
                    uint8_t table[256]);

// Return whether the sum of this many grey values can be reproduced.
inline bool can_sum(int64_t pixels, const torch_sum::Order& order) {
  return pixels <= torch_sum::kExactBytes ||
         (order.valid() && torch_sum::share_of(pixels, order) <= torch_sum::max_in_share(order.lanes));
}

}  // namespace stoker::torch_color
