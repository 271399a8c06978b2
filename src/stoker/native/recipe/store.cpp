// SPDX-License-Identifier: Apache-2.0
#include "recipe/store.hpp"

#include <algorithm>
#include <cstring>

#include "pixel/kernels.hpp"
#include "pixel/rows.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kChunkPixels = 2048;  // so few that planes of bytes stay in the L1 cache

const uint8_t* table_of(const Planes& p, int64_t channel) {
  return p.table + (p.per_channel ? 256 * p.item * channel : 0);
}

// Map `n` bytes of one channel through the table; `past`: the values are read much later.
void map_bytes(const pixel::Kernels& k, const Planes& p, int64_t channel, const uint8_t* bytes, int n, uint8_t* to,
               bool past) {
  const uint8_t* const table = table_of(p, channel);
  if (p.chains)
    return run_chain(p.chains[p.per_channel ? channel : 0], reinterpret_cast<const float*>(table), bytes, n,
                     reinterpret_cast<float*>(to), past);
  (past && k.lookup_past[p.item] ? k.lookup_past[p.item] : k.lookup[p.item])(to, bytes, table, n);
}

// Store `n` bytes of one channel of row `y`, from column `x` on.
void store_bytes(const pixel::Kernels& k, const Planes& p, int64_t channel, int64_t y, int64_t x, const uint8_t* bytes,
                 int n) {
  if (p.arrangement) {
    alignas(64) float values[kChunkPixels + 16];
    map_bytes(k, p, channel, bytes, n, reinterpret_cast<uint8_t*>(values), false);
    return p.arrangement->put(reinterpret_cast<float*>(p.to), channel, y, x, n, values);
  }
  uint8_t* const to = p.to + ((channel * p.height + y) * p.width + x) * p.item;
  if (!p.table) {
    std::memcpy(to, bytes, static_cast<size_t>(n));
    return;
  }
  // A batch is larger than the caches: non-temporal stores avoid reading its cache lines before they are written.
  map_bytes(k, p, channel, bytes, n, to, true);
}

void store_row(const pixel::Kernels& k, const Planes& p, int64_t y, const uint8_t* pixels) {
  alignas(64) uint8_t dealt[3][kChunkPixels + 64], turned[kChunkPixels + 64];
  uint8_t* planes[3] = {dealt[0], dealt[1], dealt[2]};
  const bool together = p.channels == 3 && !p.spread;
  for (int64_t x = 0; x < p.width; x += kChunkPixels) {
    const int n = static_cast<int>(std::min(kChunkPixels, p.width - x));
    const uint8_t* from = pixels + x * (p.spread ? 1 : p.channels);
    const int64_t first = p.mirror_x ? p.width - x - n : x;
    if (together) k.deal[1][3](planes, from, n);
    for (int64_t c = 0; c < p.channels; ++c) {
      const uint8_t* bytes = together ? planes[c] : from;
      if (p.mirror_x) {
        k.reverse[1](turned, bytes, n);
        bytes = turned;
      }
      store_bytes(k, p, c, y, first, bytes, n);
    }
  }
}

// Gather pixels that are not contiguous.
void gather_row(const pixel::Kernels& k, const Planes& p, int64_t y, const View& v) {
  alignas(64) uint8_t bytes[kChunkPixels];
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t x = 0; x < p.width; x += kChunkPixels) {
      const int n = static_cast<int>(std::min(kChunkPixels, p.width - x));
      const uint8_t* from = v.data + y * v.stride[0] + x * v.stride[1] + c * v.stride[2];
      for (int i = 0; i < n; ++i) bytes[i] = from[i * v.stride[1]];
      store_bytes(k, p, c, y, x, bytes, n);
    }
}

}  // namespace

void store_rows(const Planes& p, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
  const pixel::Kernels& k = pixel::kernels();
  for (int64_t y = y0; y < y1; ++y, pixels += pitch) store_row(k, p, p.mirror_y ? p.height - 1 - y : y, pixels);
}

void store_image(const Planes& planes, const View& v) {
  const pixel::Kernels& k = pixel::kernels();
  const bool together = planes.channels == 1 || v.stride[2] == 1;
  if (v.stride[2] == 0 && planes.channels == 3 && (v.stride[1] == 1 || v.stride[1] == -1)) {
    Planes spread = planes;
    spread.spread = true;
    spread.mirror_x = v.stride[1] < 0;
    store_rows(spread, 0, planes.height, v.data + (spread.mirror_x ? 1 - planes.width : 0), v.stride[0]);
  } else if (together && v.stride[1] == planes.channels) {
    store_rows(planes, 0, planes.height, v.data, v.stride[0]);
  } else if (together && v.stride[1] == -planes.channels) {
    Planes mirrored = planes;
    mirrored.mirror_x = true;
    store_rows(mirrored, 0, planes.height, v.data + (planes.width - 1) * v.stride[1], v.stride[0]);
  } else {
    for (int64_t y = 0; y < planes.height; ++y) gather_row(k, planes, y, v);
  }
}

void store_floats(const View& v, float* to) {
  const int64_t height = v.shape[0], width = v.shape[1], plane = height * width;
  RowsOf<float> rows(v);
  for (int64_t y = 0; y < height; ++y) {
    const float* row = rows.row(y);
    if (v.shape[2] == 1) {
      std::copy_n(row, width, to + y * width);
      continue;
    }
    uint8_t* planes[3];
    for (int c = 0; c < 3; ++c) planes[c] = reinterpret_cast<uint8_t*>(to + c * plane + y * width);
    pixel::kernels().deal[sizeof(float)][3](planes, reinterpret_cast<const uint8_t*>(row), static_cast<int>(width));
  }
}

}  // namespace stoker::recipe
