// SPDX-License-Identifier: Apache-2.0
// The table of an equalised histogram, as plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

#include "xmath.hpp"

namespace stoker::histogram {

// OpenCV's equalizeHist. `total`: all pixels; `first`: how many of them have the lowest value; at least one has another.
inline float equalizing_scale(int64_t total, int64_t first) { return 255.0f / static_cast<float>(total - first); }

// The new value of one; `sum`: how many pixels have it or a lower one, but for those of the lowest.
inline uint8_t equalized_value(int64_t sum, float scale) {
  const float value = static_cast<float>(sum) * scale;
  const auto rounded = static_cast<int32_t>(xm::round_even(static_cast<double>(value)));
  return static_cast<uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

}  // namespace stoker::histogram
