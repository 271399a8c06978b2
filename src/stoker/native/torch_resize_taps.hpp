// SPDX-License-Identifier: Apache-2.0
// The taps and weights of one axis of torch_resize.hpp.
#pragma once
#include <cstdint>
#include <vector>

#include "torch_resize.hpp"

namespace stoker::torch_resize {

// What every output reads along one axis. Weights in pairs, the last one with a zero.
struct Taps {
  std::vector<int32_t> start;
  std::vector<int32_t> pairs;  // `most` per output: two weights of 16 bits, the first one low
  int64_t most = 0;
  int precision = 0;

  Taps(Filter filter, bool smooth, int64_t in, int64_t out);
  int32_t half() const { return precision ? 1 << (precision - 1) : 0; }
};

}  // namespace stoker::torch_resize
