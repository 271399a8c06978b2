// SPDX-License-Identifier: Apache-2.0
// The taps and weights of one axis of torch_resize_float.hpp.
#pragma once
#include <cstdint>
#include <vector>

#include "torch_resize_float.hpp"

namespace stoker::torch_resize {

// What every output reads along one axis.
struct FloatTaps {
  // Smooth: `count` values from `index` on, one of each per output. Else `room` indices per output.
  std::vector<int32_t> index, count;
  std::vector<float> weights;  // `room` per output
  int64_t room = 0;

  FloatTaps(Filter filter, Way way, int64_t in, int64_t out);

 private:
  void smooth(Filter filter, int64_t in, int64_t out);
  void sharp(Filter filter, bool rounded, int64_t in, int64_t out);
};

}  // namespace stoker::torch_resize
