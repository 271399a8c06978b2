// SPDX-License-Identifier: Apache-2.0
// Sampled Gaussian bell. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

#include "shared/xmath.hpp"

namespace stoker::correlate {

// Return the height of the bell at element i of `size` elements; its peak is at the middle element. Weights are heights
// divided by their sum, which is accumulated from the first element to the last.
inline double bell_at(int64_t i, int64_t size, double sigma) {
  const auto x = static_cast<double>(i - size / 2);
  return xm::exp(-(x * x) / (2 * sigma * sigma));
}

}  // namespace stoker::correlate
