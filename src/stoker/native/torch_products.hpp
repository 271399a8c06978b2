// SPDX-License-Identifier: Apache-2.0
// Filters of one channel as torch makes them by a product of matrices, bit for bit: with MKL's kernels for AVX-512.
#pragma once
#include "correlate.hpp"

namespace stoker::torch_products {

constexpr int64_t kMostWeights = 15;  // more are added up in yet another order
constexpr int64_t kTogether = 16;     // pixels; what is left at the end of an image is added up one by one

// What correlate::correlate does with `window.fused`, in that order: eight weights at a time, as
// ((0 + 2) + (1 + 3)) + ((4 + 6) + (5 + 7)), in which of each pair the second's product is rounded, then the others one
// by one. src and dst: [H,W,1] with any strides, of U8 or F32; they must not overlap.
// Returns false, with dst untouched, for other images, or more weights.
bool correlate(const View& src, const correlate::Window& window, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_products
