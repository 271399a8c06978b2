// SPDX-License-Identifier: Apache-2.0
// Colours of bytes as torchvision's tensor kernels change them with torch on CPUs, bit for bit.
//
// Sums are float32's; where torch adds a product (`add` with alpha, convolutions) it is a fused multiply-add.
#pragma once
#include "tensor.hpp"
#include "torch_color_point.hpp"
#include "torch_sum.hpp"

namespace stoker::torch_color {

// torchvision's transforms have two generations. The first one rounds every product before it adds it, and takes grey
// as bytes.
enum class Generation : uint8_t { First = 1, Second = 2 };

// Images are [H,W,C] of U8: `src` with any strides, `dst` with channels side by side. Three channels where not said.

void gray(Generation generation, const View& src, const View& dst);  // to one channel
void saturate(Generation generation, const View& src, double factor, const View& dst);
void hue(Generation generation, const View& src, double shift, const View& dst);
// dst, pixels side by side = src blended with itself smoothed (but for the outermost pixels); one or three channels, at
// least 3 x 3.
// `products`: one channel, in the order of a product of matrices (torch_products.hpp).
bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth,
             Scratch& work);

// A table for every value (others follow from histograms, torch_color_point.hpp). One or three channels.
// `order`: how torch adds up the grey values, of more than torch_sum::kExactBytes; else it does not matter.
void contrast_table(Generation generation, const View& src, double factor, const torch_sum::Order& order,
                    uint8_t table[256]);

// Whether the sum of so many grey values can be taken.
inline bool can_sum(int64_t pixels, const torch_sum::Order& order) {
  return pixels <= torch_sum::kExactBytes ||
         (order.valid() && torch_sum::share_of(pixels, order) <= torch_sum::most_in_share(order.lanes));
}

}  // namespace stoker::torch_color
