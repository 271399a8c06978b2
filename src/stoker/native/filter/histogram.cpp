// SPDX-License-Identifier: Apache-2.0
#include "filter/histogram.hpp"

#include <algorithm>
#include <cstring>

#include "pixel/rows.hpp"

namespace stoker::histogram {

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 31;  // that a table of 32-bit counts takes

// Whether each row is one run of bytes.
bool has_packed_rows(const View& image) {
  const int64_t channels = image.shape[2];
  return (channels == 1 || image.stride[2] == 1) && (image.shape[1] == 1 || image.stride[1] == channels);
}

View channel_of(const View& image, int64_t c) {
  View plane = image;
  plane.data += c * image.stride[2];
  plane.shape[2] = 1;
  plane.stride[2] = 1;
  return plane;
}

// Call f(first row, count) for parts of an image whose counts fit into 32 bits.
template <class F>
void each_part(const View& image, F&& f) {
  const int64_t rows = std::max<int64_t>(1, kMostPixels / std::max<int64_t>(1, image.shape[1]));
  for (int64_t y = 0; y < image.shape[0]; y += rows) f(y, std::min(y + rows, image.shape[0]));
}

// Count interleaved channels in one pass, with several tables per channel, so that the increments of a run of equal pixels
// do not wait for each other's stores.
template <int kChannels, int kTables>
void count_interleaved(const View& image, int64_t* counts) {
  uint32_t part[kTables][kChannels][256];
  each_part(image, [&](int64_t begin, int64_t end) {
    std::memset(part, 0, sizeof part);
    for (int64_t y = begin; y < end; ++y) {
      const uint8_t* p = image.data + y * image.stride[0];
      int64_t x = 0;
      for (; x + kTables <= image.shape[1]; x += kTables, p += kTables * kChannels)
        for (int t = 0; t < kTables; ++t)
          for (int c = 0; c < kChannels; ++c) ++part[t][c][p[t * kChannels + c]];
      for (; x < image.shape[1]; ++x, p += kChannels)
        for (int c = 0; c < kChannels; ++c) ++part[0][c][p[c]];
    }
    for (int c = 0; c < kChannels; ++c)
      for (int i = 0; i < 256; ++i)
        for (int t = 0; t < kTables; ++t) counts[256 * c + i] += part[t][c][i];
  });
}

void count_strided(const View& plane, int64_t* counts) {
  uint32_t part[4][256];
  each_part(plane, [&](int64_t begin, int64_t end) {
    std::memset(part, 0, sizeof part);
    for (int64_t y = begin; y < end; ++y) {
      const uint8_t* p = plane.data + y * plane.stride[0];
      for (int64_t x = 0; x < plane.shape[1]; ++x, p += plane.stride[1]) ++part[x & 3][*p];
    }
    for (int i = 0; i < 256; ++i)
      for (int t = 0; t < 4; ++t) counts[i] += part[t][i];
  });
}

// Look up rows that are runs of bytes: of one table, or of three interleaved channels with a table each.
void apply_to_rows(const View& from, const uint8_t* tables, int64_t per_channel, const View& to) {
  const pixel::LookupFn lookup = pixel::kernels().lookup[1];
  const int64_t values = from.shape[1] * from.shape[2];
  constexpr int64_t kAtATime = int64_t{1} << 30;
  Planes3 planes;
  for (int64_t y = 0; y < from.shape[0]; ++y) {
    const uint8_t* p = from.data + y * from.stride[0];
    uint8_t* q = to.data + y * to.stride[0];
    if (!per_channel || from.shape[2] == 1) {
      for (int64_t i = 0; i < values; i += kAtATime)
        lookup(q + i, p + i, tables, static_cast<int>(std::min(kAtATime, values - i)));
      continue;
    }
    planes.each(p, from.shape[1], [&](int64_t x, int n) {
      for (int c = 0; c < 3; ++c) lookup(planes.at[c], planes.at[c], tables + c * per_channel, n);
      planes.put(q, x, n);
    });
  }
}

}  // namespace

void count(const View& image, int64_t* counts) {
  if (has_packed_rows(image) && image.shape[2] == 3) return count_interleaved<3, 4>(image, counts);
  if (has_packed_rows(image) && image.shape[2] == 1) return count_interleaved<1, 4>(image, counts);
  for (int64_t c = 0; c < image.shape[2]; ++c) count_strided(channel_of(image, c), counts + 256 * c);
}

void apply(const View& from, const uint8_t* tables, int64_t per_channel, const View& to) {
  const int64_t channels = from.shape[2];
  if (has_packed_rows(from) && has_packed_rows(to) && (channels == 1 || channels == 3 || !per_channel))
    return apply_to_rows(from, tables, per_channel, to);
  for (int64_t c = 0; c < channels; ++c) {
    const View a = channel_of(from, c), b = channel_of(to, c);
    const uint8_t* table = tables + c * per_channel;
    if (channels > 1 && has_packed_rows(a) && has_packed_rows(b)) {
      apply_to_rows(a, table, 0, b);
      continue;
    }
    for (int64_t y = 0; y < a.shape[0]; ++y) {
      const uint8_t* p = a.data + y * a.stride[0];
      uint8_t* q = b.data + y * b.stride[0];
      for (int64_t x = 0; x < a.shape[1]; ++x) q[x * b.stride[1]] = table[p[x * a.stride[1]]];
    }
  }
}

}  // namespace stoker::histogram
