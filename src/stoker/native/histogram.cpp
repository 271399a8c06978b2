// SPDX-License-Identifier: Apache-2.0
#include "histogram.hpp"

#include <algorithm>

#include "histogram_table.hpp"

namespace stoker::histogram {

namespace {

uint8_t clipped(double x) { return static_cast<uint8_t>(std::clamp(static_cast<int>(x), 0, 255)); }

void identity(uint8_t table[256]) {
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
}

struct Used {
  int64_t total = 0;
  int first = 255, last = 0, values = 0;
};

Used used(const int64_t counts[256]) {
  Used u;
  for (int i = 0; i < 256; ++i) {
    if (!counts[i]) continue;
    u.total += counts[i];
    u.first = std::min(u.first, i);
    u.last = i;
    ++u.values;
  }
  return u;
}

}  // namespace

void count(const View& plane, int64_t* counts) {
  // Four tables, so that a run of one value does not wait for its own store.
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

void equalized(const int64_t counts[256], uint8_t table[256]) {
  const Used u = used(counts);
  if (u.values <= 1) return identity(table);
  const float scale = equalizing_scale(u.total, counts[u.first]);
  int64_t sum = 0;
  for (int i = 0; i < 256; ++i) {
    if (i > u.first) sum += counts[i];
    table[i] = equalized_value(sum, scale);
  }
}

void equalized_in_steps(const int64_t counts[256], uint8_t table[256]) {
  const Used u = used(counts);
  const int64_t step = u.values ? (u.total - counts[u.last]) / 255 : 0;
  if (u.values <= 1 || step == 0) return identity(table);
  int64_t n = step / 2;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::min<int64_t>(n / step, 255));
    n += counts[i];
  }
}

void equalized_whole(const int64_t counts[256], uint8_t table[256]) {
  const Used u = used(counts);
  const int64_t step = u.values ? (u.total - counts[u.last]) / 255 : 0;
  if (step == 0) return identity(table);
  int64_t sum = 0;
  for (int i = 0; i < 256; ++i) {
    table[i] = i ? static_cast<uint8_t>(std::min<int64_t>((sum + step / 2) / step, 255)) : 0;
    sum += counts[i];
  }
}

void stretched(const int64_t counts[256], uint8_t table[256]) {
  const Used u = used(counts);
  if (u.values <= 1) return identity(table);
  const double scale = 255.0 / (u.last - u.first), offset = -u.first * scale;
  for (int i = 0; i < 256; ++i) table[i] = clipped(i * scale + offset);
}

}  // namespace stoker::histogram
