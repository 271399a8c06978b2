// SPDX-License-Identifier: Apache-2.0
// Taps and weights of one axis of torch/resize_float.hpp.
#pragma once
#include <cstdint>
#include <vector>

#include "torch/resize_float.hpp"

namespace stoker::torch_resize {

// Source positions and weights of every output along one axis.
struct FloatTaps {
  // Smooth: one `index` and one `count` per output; the output reads `count` values from `index` on. Else `max_taps`
  // indices per output.
  std::vector<int32_t> index, count;
  std::vector<float> weights;  // `max_taps` per output
  int64_t max_taps = 0;

  FloatTaps(Filter filter, Way way, int64_t in, int64_t out);

 private:
  void smooth(Filter filter, int64_t in, int64_t out);
  void sharp(Filter filter, bool rounded, int64_t in, int64_t out);
};

}  // namespace stoker::torch_resize
