// SPDX-License-Identifier: Apache-2.0
#include "filter/clahe.hpp"

#include <algorithm>
#include <cstring>

#include "base/carver.hpp"
#include "base/simd.hpp"
#include "filter/padded_rows.hpp"
#include "shared/clahe.hpp"
#include "shared/lab.hpp"

namespace stoker::clahe {

namespace {

constexpr int kCounters = 4;  // so that the increments of a run of equal pixels do not wait for each other's stores
constexpr int64_t kRun = 64;  // pixels of a loop

// Weights of the columns, and the runs of columns with the same two tiles.
struct Columns {
  float *share, *rest;
};

// Values of four tiles for each value: above left, above right, below left, below right.
using Quads = uint32_t;

struct Blend {
  const uint8_t* from;
  const Quads* quads;
  Columns columns;
  float share, rest;  // of the rows
  int64_t count;
  uint8_t* to;
};

template <int64_t kWide>
[[gnu::always_inline]] inline void blend_run(const Blend& b, int64_t x) {
  Quads found[kWide];
  for (int64_t k = 0; k < kWide; ++k) found[k] = b.quads[b.from[x + k]];
  const float* share = b.columns.share + x;
  const float* rest = b.columns.rest + x;
  for (int64_t k = 0; k < kWide; ++k) {
    const auto value = [&](int shift) __attribute__((always_inline)) {
      return static_cast<float>(static_cast<int32_t>(found[k] >> shift & 255));
    };
    const float above = value(0) * rest[k] + value(8) * share[k], below = value(16) * rest[k] + value(24) * share[k];
    // Adding 1.5 * 2^23 rounds half to even; the value is at most 255, and so needs no limits.
    const float sum = above * b.rest + below * b.share + 12582912.0f;
    uint32_t bits;
    std::memcpy(&bits, &sum, sizeof bits);
    b.to[x + k] = static_cast<uint8_t>(bits);
  }
}

[[gnu::always_inline]] inline void blend(const Blend& b) {
  int64_t x = 0;
  for (; x + kRun <= b.count; x += kRun) blend_run<kRun>(b, x);
  for (; x + 8 <= b.count; x += 8) blend_run<8>(b, x);
  for (; x < b.count; ++x) blend_run<1>(b, x);
}

// Products of the matrix with the linear light of each value of a channel.
struct Products {
  int32_t of[3][kValues][4];
};

struct LabRow {
  const uint16_t* table;
  const Products* products;
  const uint8_t* rgb;
  int64_t count;
  uint8_t *lightness, *a, *b;
};

[[gnu::always_inline]] inline void to_lab(const LabRow& r) {
  const uint8_t* p = r.rgb;
  const uint16_t* const roots = r.table + lab::kCubeRoots;
  for (int64_t x = 0; x < r.count; ++x, p += 3) {
    const int32_t *red = r.products->of[0][p[0]], *green = r.products->of[1][p[1]], *blue = r.products->of[2][p[2]];
    int32_t at[4];
    for (int k = 0; k < 4; ++k) at[k] = (red[k] + green[k] + blue[k]) >> 12;
    const lab::Color found = lab::from_roots(roots[at[0]], roots[at[1]], roots[at[2]]);
    r.lightness[x] = found.v[0];
    r.a[x] = found.v[1];
    r.b[x] = found.v[2];
  }
}

struct RgbRow {
  const uint16_t* table;
  const uint8_t *lightness, *a, *b;
  int64_t count;
  uint8_t* rgb;
};

template <int64_t kWide>
[[gnu::always_inline]] inline void to_rgb_run(const RgbRow& r, int64_t at) {
  int32_t root[kWide], x[kWide], y[kWide], z[kWide], light[3][kWide];
  for (int64_t k = 0; k < kWide; ++k) {
    const uint8_t value = r.lightness[at + k];
    root[k] = r.table[lab::kRoot + value];
    y[k] = r.table[lab::kLuminance + value];
  }
  for (int64_t k = 0; k < kWide; ++k) {
    const int32_t a = ((5 * r.a[at + k] * 53687 + (1 << 7)) >> 13) - 128 * lab::kOne / 500;
    const int32_t b = ((r.b[at + k] * 41943 + (1 << 4)) >> 9) - 128 * lab::kOne / 200 + 1;
    x[k] = lab::cubed(root[k] + a);
    z[k] = lab::cubed(root[k] - b);
  }
  for (int i = 0; i < 3; ++i)
    for (int64_t k = 0; k < kWide; ++k) {
      const int32_t sum =
          (lab::kBack[i][0] * x[k] + lab::kBack[i][1] * y[k] + lab::kBack[i][2] * z[k] + (1 << 13)) >> 14;
      light[i][k] = std::clamp(sum, 0, 4095);
    }
  uint8_t* p = r.rgb + 3 * at;
  for (int64_t k = 0; k < kWide; ++k, p += 3)
    for (int i = 0; i < 3; ++i) p[i] = static_cast<uint8_t>(r.table[lab::kEncoded + light[i][k]]);
}

[[gnu::always_inline]] inline void to_rgb(const RgbRow& r) {
  int64_t x = 0;
  for (; x + kRun <= r.count; x += kRun) to_rgb_run<kRun>(r, x);
  for (; x < r.count; ++x) to_rgb_run<1>(r, x);
}

struct Loops {
  void (*blend)(const Blend&);
  void (*to_lab)(const LabRow&);
  void (*to_rgb)(const RgbRow&);
};

void blend_plain(const Blend& b) { blend(b); }
void to_lab_plain(const LabRow& r) { to_lab(r); }
void to_rgb_plain(const RgbRow& r) { to_rgb(r); }
#if defined(__x86_64__)
#define STOKER_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")))
STOKER_WIDE void blend_avx2(const Blend& b) { blend(b); }
STOKER_WIDE void to_lab_avx2(const LabRow& r) { to_lab(r); }
STOKER_WIDE void to_rgb_avx2(const RgbRow& r) { to_rgb(r); }
STOKER_AVX512 void blend_avx512(const Blend& b) { blend(b); }
STOKER_AVX512 void to_rgb_avx512(const RgbRow& r) { to_rgb(r); }
#endif

Loops loops() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) return {blend_avx512, to_lab_avx2, to_rgb_avx512};
  if (isa() == Isa::AVX2) return {blend_avx2, to_lab_avx2, to_rgb_avx2};
#endif
  return {blend_plain, to_lab_plain, to_rgb_plain};
}

// Reflect the pixels of the image into the rest of the extended plane.
void extend(uint8_t* plane, int64_t height, int64_t width, const Tiles& tiles) {
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* const row = plane + y * tiles.all_width;
    for (int64_t x = width; x < tiles.all_width; ++x) row[x] = row[border_position(x, width, Border::Reflect101)];
  }
  for (int64_t y = height; y < tiles.all_height; ++y)
    std::memcpy(plane + y * tiles.all_width, plane + border_position(y, height, Border::Reflect101) * tiles.all_width,
                static_cast<size_t>(tiles.all_width));
}

// Write the table of one tile.
void tabulate(const uint8_t* tile, const Tiles& tiles, double clip_limit, uint8_t* table) {
  int64_t counts[kValues] = {};
  uint32_t part[kCounters][kValues];
  constexpr int64_t kMostPixels = int64_t{1} << 31;
  const int64_t most_rows = std::max<int64_t>(1, kMostPixels / tiles.width);
  for (int64_t begin = 0; begin < tiles.height; begin += most_rows) {
    std::memset(part, 0, sizeof part);
    for (int64_t y = begin; y < std::min(begin + most_rows, tiles.height); ++y) {
      const uint8_t* p = tile + y * tiles.all_width;
      int64_t x = 0;
      for (; x + kCounters <= tiles.width; x += kCounters)
        for (int k = 0; k < kCounters; ++k) ++part[k][p[x + k]];
      for (; x < tiles.width; ++x) ++part[0][p[x]];
    }
    for (int v = 0; v < kValues; ++v)
      for (int k = 0; k < kCounters; ++k) counts[v] += part[k][v];
  }
  const int64_t limit = count_limit(clip_limit, tiles.pixels());
  int64_t excess = 0, sum = 0;
  if (limit)
    for (const int64_t count : counts) excess += std::max<int64_t>(count - limit, 0);
  const float scale = tiles.scale();
  for (int v = 0; v < kValues; ++v) {
    sum += distributed(counts[v], limit, excess, v);
    table[v] = rounded(static_cast<float>(sum) * scale);
  }
}

// Plane of bytes, extended to whole tiles, with what its equalization needs.
struct Plane {
  Tiles tiles;
  uint8_t* pixels;
  uint8_t* tables;
  Quads* quads;  // of a pair of rows of tiles, for each pair of columns
  Columns columns;
  int64_t runs = 0;       // of columns between the same two columns of tiles
  int64_t *pairs, *ends;  // the pair of each run, and the column after its last one

  Plane(const View& src, const Settings& settings)
      : tiles(src.shape[0], src.shape[1], settings.across, settings.down) {}
  void carve(Carver& c, int64_t width) {
    pixels = c.take<uint8_t>(static_cast<size_t>(tiles.all_width * tiles.all_height));
    tables = c.take<uint8_t>(static_cast<size_t>(tiles.count() * kValues));
    quads = c.take<Quads>(static_cast<size_t>((tiles.across + 1) * kValues));
    pairs = c.take<int64_t>(static_cast<size_t>(tiles.across + 1));
    ends = c.take<int64_t>(static_cast<size_t>(tiles.across + 1));
    columns.share = c.take<float>(static_cast<size_t>(width));
    columns.rest = c.take<float>(static_cast<size_t>(width));
  }

  void tabulate_all(int64_t height, int64_t width, double clip_limit) {
    extend(pixels, height, width, tiles);
    for (int64_t j = 0; j < tiles.down; ++j)
      for (int64_t i = 0; i < tiles.across; ++i)
        tabulate(pixels + j * tiles.height * tiles.all_width + i * tiles.width, tiles, clip_limit,
                 tables + (j * tiles.across + i) * kValues);
    const float inverse = 1.0f / static_cast<float>(tiles.width);
    int64_t first = -1, second = -1;
    runs = 0;
    for (int64_t x = 0; x < width; ++x) {
      const Between at(x, inverse, tiles.across);
      columns.share[x] = at.share;
      columns.rest[x] = at.rest;
      if (at.first != first || at.second != second) {
        first = at.first;
        second = at.second;
        // Before the first centre and after the last one, a column of tiles is its own neighbour; with one column, the
        // joined tables of all pairs are equal.
        pairs[runs++] = first < second ? second : first == 0 ? 0 : tiles.across;
      }
      ends[runs - 1] = x + 1;
    }
  }

  const uint8_t* table(int64_t j, int64_t i) const { return tables + (j * tiles.across + i) * kValues; }

  // Join the tables of two rows of tiles.
  void join(int64_t above, int64_t below) {
    for (int64_t i = 0; i <= tiles.across; ++i) {
      const int64_t left = std::max<int64_t>(i - 1, 0), right = std::min(i, tiles.across - 1);
      const uint8_t *a = table(above, left), *b = table(above, right), *c = table(below, left),
                    *d = table(below, right);
      Quads* const to = quads + i * kValues;
      for (int v = 0; v < kValues; ++v)
        to[v] = static_cast<Quads>(a[v]) | static_cast<Quads>(b[v]) << 8 | static_cast<Quads>(c[v]) << 16 |
                static_cast<Quads>(d[v]) << 24;
    }
  }

  // Call done(y, row) for each row of the equalized plane; `row` has room for it.
  template <class Done>
  void each_row(int64_t height, const Loops& loop, uint8_t* row, Done&& done) {
    const float inverse_height = 1.0f / static_cast<float>(tiles.height);
    int64_t above = -1, below = -1;
    for (int64_t y = 0; y < height; ++y) {
      const Between at(y, inverse_height, tiles.down);
      if (at.first != above || at.second != below) join(above = at.first, below = at.second);
      const uint8_t* const from = pixels + y * tiles.all_width;
      for (int64_t k = 0, x = 0; k < runs; x = ends[k++])
        loop.blend({from + x,
                    quads + pairs[k] * kValues,
                    {columns.share + x, columns.rest + x},
                    at.share,
                    at.rest,
                    ends[k] - x,
                    row + x});
      done(y, row);
    }
  }
};

}  // namespace

void equalize(const View& src, const Settings& settings, const View& dst, Scratch& scratch) {
  const int64_t height = src.shape[0], width = src.shape[1];
  Plane plane(src, settings);
  uint8_t* row = nullptr;
  const auto carve = [&](Carver c) {
    plane.carve(c, width);
    row = c.take<uint8_t>(static_cast<size_t>(width));
    return c.used();
  };
  const size_t bytes = carve(Carver());
  carve(Carver(scratch.get(bytes)));
  const PaddedRows source(src, 0, 0, Border::Clamp);
  for (int64_t y = 0; y < height; ++y)
    source.read(y, 0, plane.pixels + y * plane.tiles.all_width, [](uint8_t*, int64_t) {});
  plane.tabulate_all(height, width, settings.clip_limit);
  plane.each_row(height, loops(), row, [&](int64_t y, const uint8_t* out) { scatter_row(out, dst, y); });
}

void equalize_lightness(const View& src, const Settings& settings, const uint16_t* table, const View& dst,
                        Scratch& scratch) {
  const int64_t height = src.shape[0], width = src.shape[1];
  Plane plane(src, settings);
  uint8_t *row = nullptr, *pixels = nullptr, *chroma = nullptr;
  Products* products = nullptr;
  const auto carve = [&](Carver c) {
    plane.carve(c, width);
    row = c.take<uint8_t>(static_cast<size_t>(width));
    pixels = c.take<uint8_t>(static_cast<size_t>(3 * width));
    chroma = c.take<uint8_t>(static_cast<size_t>(2 * width * height));
    products = c.take<Products>(1);
    return c.used();
  };
  const size_t bytes = carve(Carver());
  carve(Carver(scratch.get(bytes)));
  for (int c = 0; c < 3; ++c)
    for (int v = 0; v < kValues; ++v) {
      for (int k = 0; k < 3; ++k)
        products->of[c][v][k] = lab::kForward[k][c] * table[lab::kLinear + v] + (c == 0 ? lab::kRounding : 0);
      products->of[c][v][3] = 0;
    }
  const Loops loop = loops();
  const PaddedRows source(src, 0, 0, Border::Clamp);
  for (int64_t y = 0; y < height; ++y) {
    source.read(y, 0, pixels, [](uint8_t*, int64_t) {});
    uint8_t* const a = chroma + 2 * width * y;
    loop.to_lab({table, products, pixels, width, plane.pixels + y * plane.tiles.all_width, a, a + width});
  }
  plane.tabulate_all(height, width, settings.clip_limit);
  plane.each_row(height, loop, row, [&](int64_t y, const uint8_t* lightness) {
    const uint8_t* const a = chroma + 2 * width * y;
    loop.to_rgb({table, lightness, a, a + width, width, pixels});
    scatter_row(pixels, dst, y);
  });
}

}  // namespace stoker::clahe
