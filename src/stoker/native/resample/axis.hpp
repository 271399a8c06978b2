// SPDX-License-Identifier: Apache-2.0
// Taps of one axis in memory, in the format of the element type's kernels.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/carver.hpp"
#include "resample/kernels.hpp"
#include "resample/weights.hpp"

namespace stoker::resample {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Taps of one axis: the source positions and weights of each output, in the format of the element type's kernels.
struct AxisTaps {
  Window window;
  int32_t* start = nullptr;
  int32_t* count = nullptr;
  int32_t most = 0;
  int64_t groups = 0;
  double* room = nullptr;
  double* weight = nullptr;    // for types that sum in double: `most` per output
  uint32_t* packed = nullptr;  // for U8: 4 * groups per output
  int32_t first = 0, end = 0;  // range of the source positions that are used

  bool picks() const { return window.filter == Filter::Nearest; }

  void carve(Carver& carver, bool is_u8) {
    const int64_t padded = round_up(window.out, kBlock), group_bound = (window.max_taps + kGroup - 1) / kGroup;
    start = carver.take<int32_t>(padded);
    count = carver.take<int32_t>(padded);
    if (picks()) return;
    room = carver.take<double>(group_bound * kGroup);
    if (is_u8) {
      packed = carver.take<uint32_t>(padded * group_bound * 4);
    } else {
      weight = carver.take<double>(window.out * window.max_taps);
    }
  }

  void find() {
    most = find_taps(window, start, count);
    groups = (std::max(most, 1) + kGroup - 1) / kGroup;
    first = static_cast<int32_t>(window.in);
    for (int64_t i : {int64_t{0}, window.out - 1}) {  // starts and ends are monotone
      first = std::min(first, start[i]);
      end = std::max(end, start[i] + std::max(count[i], 1));
    }
  }

  void find_doubles() {
    find_weights(window, start, count, room, most,
                 [&](int64_t o, const double* w) { std::copy_n(w, count[o], weight + o * most); });
  }

  void find_packed(Packing packing, bool blocked) {
    const auto store = [&](int64_t o, const double* w) __attribute__((always_inline)) {
      for (int64_t g = 0; g < groups; ++g) {
        int32_t fixed[kGroup];
        for (int t = 0; t < kGroup; ++t) fixed[t] = to_fixed(w[g * kGroup + t]);
        store_group(packing, blocked, fixed, o, g);
      }
    };
    find_weights(window, start, count, room, groups * kGroup, store);
  }

 private:
  void store_group(Packing packing, bool blocked, const int32_t* fixed, int64_t o, int64_t g) {
    if (!blocked) return pack_group(packing, fixed, packed + (o * groups + g) * 4);
    uint32_t words[4];
    pack_group(packing, fixed, words);
    for (int d = 0; d < 4; ++d) packed[((o / kBlock * groups + g) * 4 + d) * kBlock + o % kBlock] = words[d];
  }
};

}  // namespace stoker::resample
