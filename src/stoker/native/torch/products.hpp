// SPDX-License-Identifier: Apache-2.0
// Single-channel filters as torch computes them by a matrix product, bit for bit equal to MKL's kernels for AVX-512.
#pragma once
#include "filter/correlate.hpp"

namespace stoker::torch_products {

constexpr int64_t kMaxWeights = 15;  // MKL adds more weights in yet another order
// Pixels that are summed together; remaining pixels at the end of an image are summed one by one.
constexpr int64_t kTogether = 16;

// Compute the same as correlate::correlate with `window.fused`, but added in MKL's order: eight weights at a time, as
// ((0 + 2) + (1 + 3)) + ((4 + 6) + (5 + 7)), where the second product of each pair is rounded, then the remaining
// weights one by one. src and dst: [H,W,1] with any strides, of U8 or F32; they must not overlap. Return false, with
// dst untouched, for other images or more weights.
bool correlate(const View& src, const correlate::Window& window, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_products
