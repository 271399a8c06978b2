// SPDX-License-Identifier: Apache-2.0
// Taps and weights of one axis of torch/resize.hpp.
#pragma once
#include <cstdint>
#include <vector>

#include "torch/resize.hpp"

namespace stoker::torch_resize {

// Source positions and weights of every output along one axis. Weights are stored in pairs; the last pair may have a
// zero.
struct Taps {
  std::vector<int32_t> start;
  std::vector<int32_t> pairs;  // `most` per output: two 16-bit weights, the first one in the low half
  int64_t most = 0;
  int precision = 0;

  Taps(Filter filter, bool smooth, int64_t in, int64_t out);
  int32_t half() const { return precision ? 1 << (precision - 1) : 0; }
};

}  // namespace stoker::torch_resize
