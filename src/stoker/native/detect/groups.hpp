// SPDX-License-Identifier: Apache-2.0
// Boxes by label: the ranks of one label are neighbours, in ascending order.
#pragma once
#include <algorithm>
#include <cstdint>

#include "detect/columns.hpp"

namespace stoker::detect {

// Sort the ranks 0..n by the label of box order[rank], stably; `found` has the labels by rank afterwards in the order of
// `ranks`. `spare` has room for n labels.
inline void group_by_label(const View& labels, const uint32_t* order, uint32_t n, uint32_t* ranks, int64_t* found,
                           int64_t* spare) {
  constexpr int64_t kCounted = 1024;  // distinct labels that a counting sort takes
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (uint32_t r = 0; r < n; ++r) {
    spare[r] = element<int64_t>(labels, order[r]);
    least = std::min(least, spare[r]);
    most = std::max(most, spare[r]);
  }
  if (n > 0 && static_cast<uint64_t>(most) - static_cast<uint64_t>(least) < kCounted) {
    uint32_t starts[kCounted + 1] = {};
    for (uint32_t r = 0; r < n; ++r) ++starts[spare[r] - least + 1];
    for (int64_t i = 0; i < kCounted; ++i) starts[i + 1] += starts[i];
    for (uint32_t r = 0; r < n; ++r) ranks[starts[spare[r] - least]++] = r;
  } else {
    for (uint32_t r = 0; r < n; ++r) ranks[r] = r;
    std::stable_sort(ranks, ranks + n, [&](uint32_t a, uint32_t b) { return spare[a] < spare[b]; });
  }
  for (uint32_t i = 0; i < n; ++i) found[i] = spare[ranks[i]];
}

}  // namespace stoker::detect
