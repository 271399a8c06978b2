// SPDX-License-Identifier: Apache-2.0
// Lookup tables for 8-bit values that follow from a histogram. Plain C++ that compiles for the CPU and for a GPU.
// `counts` and `table` have 256 elements.
#pragma once
#include <algorithm>
#include <cstdint>

#include "shared/xmath.hpp"

namespace stoker::histogram {

// Return the scale of OpenCV's equalizeHist. `total` is the number of pixels and `first` the number of pixels with the
// lowest value; at least one pixel must have another value.
inline float equalizing_scale(int64_t total, int64_t first) { return 255.0f / static_cast<float>(total - first); }

// Return the new value of a value. `sum` is the number of pixels with this value or a lower one, without the pixels of
// the lowest value.
inline uint8_t equalized_value(int64_t sum, float scale) {
  const float value = static_cast<float>(sum) * scale;
  const auto rounded = static_cast<int32_t>(xm::round_even(static_cast<double>(value)));
  return static_cast<uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

inline uint8_t clipped(double x) { return static_cast<uint8_t>(std::clamp(static_cast<int>(x), 0, 255)); }

inline void identity(uint8_t* table) {
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
}

struct Summary {
  int64_t total = 0;
  int first = 255, last = 0, values = 0;
};

template <class Count>
inline Summary used(const Count* counts) {
  Summary u;
  for (int i = 0; i < 256; ++i) {
    if (!counts[i]) continue;
    u.total += counts[i];
    u.first = std::min(u.first, i);
    u.last = i;
    ++u.values;
  }
  return u;
}

// OpenCV's equalizeHist, which DALI's `equalize` equals: the lowest value becomes 0; an image of a single value stays
// as it is.
template <class Count>
inline void equalized(const Count* counts, uint8_t* table) {
  const Summary u = used(counts);
  if (u.values <= 1) return identity(table);
  const float scale = equalizing_scale(u.total, counts[u.first]);
  int64_t sum = 0;
  for (int i = 0; i < 256; ++i) {
    if (i > u.first) sum += counts[i];
    table[i] = equalized_value(sum, scale);
  }
}

// Pillow's ImageOps.equalize: it skips small steps and keeps images of few values as they are.
template <class Count>
inline void equalized_in_steps(const Count* counts, uint8_t* table) {
  const Summary u = used(counts);
  const int64_t step = u.values ? (u.total - counts[u.last]) / 255 : 0;
  if (u.values <= 1 || step == 0) return identity(table);
  int64_t n = step / 2;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::min<int64_t>(n / step, 255));
    n += counts[i];
  }
}

// Equalization of torchvision's tensor kernels: rounds down, and the lowest value becomes 0.
template <class Count>
inline void equalized_whole(const Count* counts, uint8_t* table) {
  const Summary u = used(counts);
  const int64_t step = u.values ? (u.total - counts[u.last]) / 255 : 0;
  if (step == 0) return identity(table);
  int64_t sum = 0;
  for (int i = 0; i < 256; ++i) {
    table[i] = i ? static_cast<uint8_t>(std::min<int64_t>((sum + step / 2) / step, 255)) : 0;
    sum += counts[i];
  }
}

// Pillow's ImageOps.autocontrast without cutoff: stretches from the lowest to the highest value and truncates.
template <class Count>
inline void stretched(const Count* counts, uint8_t* table) {
  const Summary u = used(counts);
  if (u.values <= 1) return identity(table);
  const double scale = 255.0 / (u.last - u.first), offset = -u.first * scale;
  for (int i = 0; i < 256; ++i) table[i] = clipped(i * scale + offset);
}

}  // namespace stoker::histogram
