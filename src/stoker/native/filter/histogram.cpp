// SPDX-License-Identifier: Apache-2.0
#include "filter/histogram.hpp"

namespace stoker::histogram {

void count(const View& plane, int64_t* counts) {
  // Four tables, so that the increments of a run of equal values do not wait for each other's stores.
  uint32_t part[4][256] = {};
  const int64_t width = plane.shape[1], step = plane.stride[1];
  int64_t since = 0;
  const auto flush = [&] {
    for (int i = 0; i < 256; ++i) {
      counts[i] += int64_t{part[0][i]} + part[1][i] + part[2][i] + part[3][i];
      part[0][i] = part[1][i] = part[2][i] = part[3][i] = 0;
    }
    since = 0;
  };
  for (int64_t y = 0; y < plane.shape[0]; ++y) {
    const uint8_t* p = plane.data + y * plane.stride[0];
    for (int64_t x = 0; x < width; ++x, p += step) ++part[x & 3][*p];
    if ((since += width) > int64_t{1} << 31) flush();
  }
  flush();
}

void apply(const View& from, const uint8_t table[256], const View& to) {
  for (int64_t y = 0; y < from.shape[0]; ++y) {
    const uint8_t* p = from.data + y * from.stride[0];
    uint8_t* q = to.data + y * to.stride[0];
    for (int64_t x = 0; x < from.shape[1]; ++x) q[x * to.stride[1]] = table[p[x * from.stride[1]]];
  }
}

}  // namespace stoker::histogram
