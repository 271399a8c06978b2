// SPDX-License-Identifier: Apache-2.0
// A sampled Gaussian bell: plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

#include "xmath.hpp"

namespace stoker::correlate {

// Its height at element i of `size`, with its middle at the middle one; weights are heights over their sum, which is taken
// from the first to the last.
inline double bell_at(int64_t i, int64_t size, double sigma) {
  const auto x = static_cast<double>(i - size / 2);
  return xm::exp(-(x * x) / (2 * sigma * sigma));
}

}  // namespace stoker::correlate
