// SPDX-License-Identifier: Apache-2.0
// Windows of derivatives and of smoothing, as Sobel's. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

namespace stoker::derivative {

constexpr int64_t kMost = 31;  // taps of a window

// Write the window of `size` elements for the derivative of an order below `size`: binomial coefficients of a smaller
// window, differentiated. All numbers are integers below 2^53, so that no order of additions matters.
inline void window(double* w, int64_t size, int64_t order) {
  w[0] = 1;
  for (int64_t n = 1; n < size; ++n) {
    const double sign = n >= size - order ? -1.0 : 1.0;  // the window so far, convolved with 1 1 or with 1 -1
    w[n] = 0;
    for (int64_t i = n; i > 0; --i) w[i] = w[i - 1] + sign * w[i];
    w[0] = sign * w[0];
  }
}

}  // namespace stoker::derivative
