// SPDX-License-Identifier: Apache-2.0
// Sum of floats as torch computes it on CPUs: the order of shared/torch_sum.hpp, with every addition rounded.
//
// Each accumulator adds its values in levels (ATen's SumKernel.cpp): a number of values, then as many of these sums,
// and so on through four levels.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "shared/torch_sum.hpp"

namespace stoker::torch_sum {

constexpr int kLevels = 4;

// Sum of one share: values in vectors of `lanes`, kWays vectors at a time.
template <int kLanes>
inline float cascade_of(const float* values, int64_t count) {
  constexpr int kWide = kWays * kLanes;
  const int64_t rows = count / kWide, vectors = count / kLanes;
  const int power = std::max<int>(4, (rows <= 2 ? 1 : std::bit_width(static_cast<uint64_t>(rows - 1))) / kLevels);
  const int64_t step = int64_t{1} << power;
  float level[kLevels][kWide] = {};
  int64_t i = 0;
  const auto add_row = [&](const float* from) {
    for (int k = 0; k < kWide; ++k) level[0][k] += from[k];
  };
  while (i + step <= rows) {
    for (int64_t j = 0; j < step; ++j, ++i) add_row(values + i * kWide);
    for (int up = 1; up < kLevels; ++up) {
      for (int k = 0; k < kWide; ++k) {
        level[up][k] += level[up - 1][k];
        level[up - 1][k] = 0.0f;
      }
      if (i & ((step - 1) << (up * power))) break;
    }
  }
  for (; i < rows; ++i) add_row(values + i * kWide);
  for (int up = 1; up < kLevels; ++up)
    for (int k = 0; k < kWide; ++k) level[0][k] += level[up][k];
  float* sums = level[0];
  for (int64_t v = rows * kWays; v < vectors; ++v)
    for (int k = 0; k < kLanes; ++k) sums[k] += values[v * kLanes + k];
  for (int way = 1; way < kWays; ++way)
    for (int k = 0; k < kLanes; ++k) sums[k] += sums[way * kLanes + k];
  float total = 0.0f;
  for (int64_t v = vectors * kLanes; v < count; ++v) total += values[v];
  for (int k = 0; k < kLanes; ++k) total += sums[k];
  return total;
}

inline float cascade(const float* values, int64_t count, int lanes) {
  if (count < lanes) return cascade_of<1>(values, count);  // added one by one
  return lanes == 4   ? cascade_of<4>(values, count)
         : lanes == 8 ? cascade_of<8>(values, count)
                      : cascade_of<16>(values, count);
}

// Return the sum of all values; `order` must be valid.
inline float sum_floats(const float* values, int64_t count, const Order& order) {
  const int64_t share = share_of(count, order);
  float sums[kMaxThreads], room[kAccumulators];
  int64_t shares = 0;
  for (int64_t at = 0; at < count; at += share)
    sums[shares++] = cascade(values + at, std::min(share, count - at), order.lanes);
  return folded_shares(sums, shares, order, room);
}

}  // namespace stoker::torch_sum
