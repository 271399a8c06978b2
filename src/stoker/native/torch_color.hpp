// SPDX-License-Identifier: Apache-2.0
// Colours of bytes as torchvision's tensor kernels change them with torch on CPUs, bit for bit.
//
// Sums are float32's; where torch adds a product (`add` with alpha, convolutions) it is a fused multiply-add.
#pragma once
#include "tensor.hpp"
#include "torch_color_point.hpp"

namespace stoker::torch_color {

// torchvision's transforms have two generations. The first one rounds every product before it adds it, and takes grey
// as bytes.
enum class Generation : uint8_t { First = 1, Second = 2 };

// Images are [H,W,C] of U8: `src` with any strides, `dst` with channels side by side. Three channels where not said.

void gray(Generation generation, const View& src, const View& dst);  // to one channel
void saturate(Generation generation, const View& src, double factor, const View& dst);
void hue(const View& src, double shift, const View& dst);  // of the second
// dst = src blended with itself smoothed (but for the outermost pixels); one or three channels, at least 3 x 3.
bool sharpen(Generation generation, const View& src, double factor, const View& dst, Scratch& smooth, Scratch& work);

// A table for every value (others follow from histograms, torch_color_point.hpp). One or three channels.
void contrast_table(Generation generation, const View& src, double factor, uint8_t table[256]);

// Up to so many pixels the sum of a grey image is exact in float32, and so the same in any order.
constexpr int64_t kExactPixels = (int64_t{1} << 24) / 255;

}  // namespace stoker::torch_color
