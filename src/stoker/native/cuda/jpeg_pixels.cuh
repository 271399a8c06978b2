// SPDX-License-Identifier: Apache-2.0
// From coefficients to samples, and from samples to pixels, for the blocks and pixels of the window alone.
#pragma once
#include "jpeg_arithmetic.cuh"
#include "jpeg_order.cuh"
#include "jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

struct alignas(16) Words4 {
  uint32_t v[4];
};

// Coefficients of blocks that hold few are mostly zero: all are, to begin with. `count` is of 16 bytes.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2) stoker_jpeg_clear(uint64_t memory, uint64_t count) {
  const uint64_t step = static_cast<uint64_t>(thread_count()) * block_count();
  for (uint64_t i = static_cast<uint64_t>(block_index()) * thread_count() + thread_index(); i < count; i += step)
    pointer<Words4>(memory)[i] = {};
}

// ---- inverse DCT: eight lanes per block, each a column and then a row ----

constexpr uint32_t kTransformThreads = 256;
constexpr uint32_t kTilePitch = 9, kTileWords = 8 * kTilePitch;  // no two lanes of a warp meet in a bank

struct TransformShared {
  int32_t tile[kTransformThreads / 8 * kTileWords];
  int16_t quantiser[64];  // columns one after the other
};

STOKER_DEVICE void load_quantiser(const Row& row, const Plane& plane, int16_t* quantiser) {
  const uint8_t* const from = pointer<const uint8_t>(row.file) + plane.quantiser;
  for (uint32_t i = thread_index(); i < 64; i += thread_count())
    quantiser[kColumnOrder.at[i]] =
        static_cast<int16_t>(plane.wide ? from[2 * i] << 8 | from[2 * i + 1] : static_cast<int>(from[i]));
}

// The DC coefficient of a block: the running sum within its segment.
STOKER_DEVICE int32_t predicted_dc(const Row& row, const Place& place, const Plane& plane, uint32_t column,
                                   uint32_t block_row) {
  const int16_t* const dc = pointer<const int16_t>(place.dc);
  const uint32_t mcu = block_row / plane.v * row.mcu_columns + column / plane.h;
  const uint32_t inside = block_row % plane.v * plane.h + column % plane.h;
  uint32_t sum = static_cast<uint32_t>(dc[mcu * row.blocks + plane.first_block + inside]);
  if (row.restart_interval && mcu >= row.restart_interval) {
    const uint32_t last = mcu / row.restart_interval * row.restart_interval - 1;
    sum -= static_cast<uint32_t>(dc[last * row.blocks + plane.first_block + plane.h * plane.v - 1]);
  }
  return static_cast<int16_t>(sum);
}

STOKER_DEVICE void unpack_column(const Words4& words, int32_t* out) {
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = static_cast<int16_t>(words.v[i] & 0xFFFF);
    out[2 * i + 1] = static_cast<int16_t>(words.v[i] >> 16);
  }
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_jpeg_transform(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t items) {
  STOKER_SHARED(TransformShared, shared);
  const Item item = pointer<const Item>(items)[block_index()];
  const uint32_t index = item.place_and_plane >> 30;
  const Place& place = pointer<const Place>(places)[item.place_and_plane & 0x3FFFFFFF];
  const Row& row = pointer<const Row>(rows)[place.row];
  const Plane& plane = row.plane[index];
  if (pointer<const uint32_t>(statuses)[place.row]) return;
  load_quantiser(row, plane, shared.quantiser);
  block_barrier();

  const uint32_t lane = thread_index() % 8, group = thread_index() / 8, groups = thread_count() / 8;
  const uint32_t blocks = static_cast<uint32_t>(plane.columns) * plane.rows;
  int32_t* const tile = shared.tile + group * kTileWords;
  for (uint32_t n = item.first + group; n < item.first + kBlocksPerItem; n += groups) {
    const bool there = n < blocks;  // all lanes of a warp take part in what follows
    const uint32_t x = n % plane.columns, y = n / plane.columns;
    int32_t in[8] = {};
    if (there) {
      unpack_column(pointer<const Words4>(place.coefficients)[8 * (uint64_t{place.first_home[index]} + n) + lane], in);
      if (lane == 0) in[0] = predicted_dc(row, place, plane, plane.first_column + x, plane.first_row + y);
    }
    const int32_t below = in[1] | in[2] | in[3] | in[4] | in[5] | in[6] | in[7];
    const bool one_row = (ballot(below != 0) >> (thread_index() % kWarp / 8 * 8) & 255) == 0;
    int32_t column[8];
    for (int i = 0; i < 8; ++i) in[i] = dequantised(in[i], shared.quantiser[8 * lane + i]);
    column8(in, one_row, column);
    for (uint32_t i = 0; i < 8; ++i) tile[i * kTilePitch + lane] = column[i];
    warp_barrier();
    for (uint32_t i = 0; i < 8; ++i) in[i] = tile[lane * kTilePitch + i];
    warp_barrier();
    if (!there) continue;
    uint8_t samples[8];
    row8(in, samples);
    uint32_t* const out =
        pointer<uint32_t>(place.samples[index] + static_cast<uint64_t>(8 * y + lane) * place.pitch[index] + 8 * x);
    for (int i = 0; i < 2; ++i)
      out[i] = static_cast<uint32_t>(samples[4 * i]) | static_cast<uint32_t>(samples[4 * i + 1]) << 8 |
               static_cast<uint32_t>(samples[4 * i + 2]) << 16 | static_cast<uint32_t>(samples[4 * i + 3]) << 24;
  }
}

// ---- upsampling and colour ----

// A component's samples around the window.
struct Samples {
  const uint8_t* corner;  // where sample (0, 0) of the image would be
  int64_t pitch;
  const Plane& plane;
  int32_t first, last;  // columns that are there

  STOKER_DEVICE Samples(const Place& place, const Row& row, uint32_t index)
      : corner(pointer<const uint8_t>(place.samples[index]) -
               static_cast<int64_t>(8 * row.plane[index].first_row) * place.pitch[index] -
               8 * row.plane[index].first_column),
        pitch(place.pitch[index]),
        plane(row.plane[index]),
        first(8 * plane.first_column) {
    const int32_t behind = first + 8 * plane.columns;
    last = (behind < plane.width ? behind : plane.width) - 1;
  }
  STOKER_DEVICE const uint8_t* line(int32_t y) const { return corner + y * pitch; }
  // For columns beside the image: the triangle filter repeats the edge.
  STOKER_DEVICE int32_t inside(int32_t x) const { return clamp_to(x, first, last); }
};

// What a pair's first and second output lean to; `at` counts outputs.
STOKER_DEVICE int32_t neighbour(int32_t at, int32_t size) {
  return clamp_to(at / 2 + (at & 1 ? 1 : -1), 0, size - 1);
}

// Four outputs of the triangle filter along a line, the first one `odd` or even, from the four inputs around them.
// `filter(near, far, second)`: the second of a pair or the first.
template <typename Filter>
STOKER_DEVICE void widen(const int32_t* s, bool odd, int32_t* out, const Filter& filter) {
  out[0] = odd ? filter(s[1], s[2], true) : filter(s[1], s[0], false);
  out[1] = odd ? filter(s[2], s[1], false) : filter(s[1], s[2], true);
  out[2] = odd ? filter(s[2], s[3], true) : filter(s[2], s[1], false);
  out[3] = odd ? filter(s[3], s[2], false) : filter(s[2], s[3], true);
}

struct ByWidth {
  STOKER_DEVICE int32_t operator()(int32_t near, int32_t far, bool second) const {
    return between(near, far, second ? 2 : 1);
  }
};
struct ByBoth {
  STOKER_DEVICE int32_t operator()(int32_t near, int32_t far, bool second) const {
    return corner(near, far, second ? 7 : 8);
  }
};

// A component at full size, at four pixels from (x, y) on. Of those outside of the window, anything.
STOKER_DEVICE void full_size(const Samples& s, int32_t x, int32_t y, int32_t* out) {
  const Plane& p = s.plane;
  const bool half_x = p.spread == Spread::Width || p.spread == Spread::Both;
  const bool half_y = p.spread == Spread::Height || p.spread == Spread::Both;
  if (p.spread == Spread::Repeat) {
    const uint8_t* const line = s.line(y / p.fy);
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) out[i] = line[s.inside((x + i > 0 ? x + i : 0) / p.fx)];
    return;
  }
  const uint8_t* const near = s.line(half_y ? y / 2 : y);
  const int32_t from = half_x ? (x >> 1) - 1 : x;
  int32_t sample[4], other[4];
  STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) sample[i] = near[s.inside(from + i)];
  if (half_y) {
    const uint8_t* const far = s.line(neighbour(y, p.height));
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) other[i] = far[s.inside(from + i)];
  }
  if (p.spread == Spread::Both) {
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) sample[i] = column_sum(sample[i], other[i]);
    widen(sample, x & 1, out, ByBoth());
  } else if (half_x) {
    widen(sample, x & 1, out, ByWidth());
  } else {
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i)
      out[i] = half_y ? between(sample[i], other[i], y & 1 ? 2 : 1) : sample[i];
  }
}

STOKER_DEVICE Pixel convert(const Row& row, int32_t a, int32_t b, int32_t c) {
  if (row.colour == Colour::YCbCr && row.wanted <= Wanted::BGR) return ycc_to_rgb(a, b, c);
  if (row.colour == Colour::RGB && row.wanted == Wanted::YCbCr) return rgb_to_ycc(a, b, c);
  if (row.colour == Colour::RGB && row.wanted == Wanted::GRAY) return {luma(a, b, c), 0, 0};
  return {static_cast<uint8_t>(a), static_cast<uint8_t>(b), static_cast<uint8_t>(c)};
}

// The planes' part in four pixels: which are read at all depends on both colour models.
STOKER_DEVICE void four_pixels(const Row& row, const Samples* samples, int32_t x, int32_t y, Pixel* out) {
  int32_t plane[kMaxPlanes][4];
  full_size(samples[0], x, y, plane[0]);
  const bool luma_alone = row.colour == Colour::Gray || (row.colour == Colour::YCbCr && row.wanted == Wanted::GRAY);
  STOKER_UNROLL for (int p = 1; p < kMaxPlanes; ++p) {
    if (!luma_alone) full_size(samples[p], x, y, plane[p]);
    STOKER_UNROLL for (int i = 0; i < 4; ++i)
      if (luma_alone) plane[p][i] = row.wanted == Wanted::YCbCr ? 128 : plane[0][i];
  }
  STOKER_UNROLL for (int i = 0; i < 4; ++i) out[i] = convert(row, plane[0][i], plane[1][i], plane[2][i]);
}

STOKER_DEVICE void store_pixel(const Row& row, uint64_t at, Pixel p) {
  uint8_t* const out = pointer<uint8_t>(at);
  const bool bgr = row.wanted == Wanted::BGR;
  out[0] = bgr ? p.c : p.a;
  if (row.wanted == Wanted::GRAY) return;
  out[1] = p.b;
  out[2] = bgr ? p.a : p.c;
}

STOKER_DEVICE uint32_t four_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a | b << 8 | c << 16 | d << 24;
}

// Four pixels of three bytes each, at an address that is a multiple of 4.
STOKER_DEVICE void store_four(uint64_t at, const Pixel* p) {
  uint32_t* const out = pointer<uint32_t>(at);
  out[0] = four_bytes(p[0].a, p[0].b, p[0].c, p[1].a);
  out[1] = four_bytes(p[1].b, p[1].c, p[2].a, p[2].b);
  out[2] = four_bytes(p[2].c, p[3].a, p[3].b, p[3].c);
}

// Groups of four pixels per row of the window: one more than needed, since the first begins before the window, so that
// all others are stored to addresses that are multiples of 4.
STOKER_DEVICE uint32_t groups_per_row(uint32_t width) { return width / kPixelsPerGroup + 2; }

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 3)
    stoker_jpeg_pixels(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t items) {
  const Item item = pointer<const Item>(items)[block_index()];
  const Place& place = pointer<const Place>(places)[item.place_and_plane];
  const Row& row = pointer<const Row>(rows)[place.row];
  if (pointer<const uint32_t>(statuses)[place.row]) return;
  const uint32_t second = row.components > 1 ? 1 : 0, third = row.components > 2 ? 2 : 0;
  const Samples samples[] = {{place, row, 0}, {place, row, second}, {place, row, third}};
  const uint32_t per_row = groups_per_row(static_cast<uint32_t>(row.width));
  const uint32_t groups = per_row * static_cast<uint32_t>(row.height);
  const bool packed = row.step_x == 3 && row.wanted != Wanted::GRAY;
  for (uint32_t g = item.first + thread_index(); g < item.first + kGroupsPerItem && g < groups; g += thread_count()) {
    const int32_t y = static_cast<int32_t>(g / per_row);
    const uint64_t line = row.out + static_cast<uint64_t>(y * row.step_y);
    const int32_t head = static_cast<int32_t>(line & 3);  // 3 * head bytes on, an address is a multiple of 4
    const int32_t x = static_cast<int32_t>(g % per_row * kPixelsPerGroup) - 4 + head;
    Pixel p[kPixelsPerGroup];
    four_pixels(row, samples, row.x0 + x, row.y0 + y, p);
    if (packed && x >= 0 && x + 4 <= row.width) {
      if (row.wanted == Wanted::BGR) {
        for (int i = 0; i < 4; ++i) p[i] = {p[i].c, p[i].b, p[i].a};
      }
      store_four(line + 3 * static_cast<uint64_t>(x), p);
      continue;
    }
    for (int32_t i = 0; i < 4; ++i)
      if (x + i >= 0 && x + i < row.width) store_pixel(row, line + static_cast<uint64_t>((x + i) * row.step_x), p[i]);
  }
}

}  // namespace stoker::jpeg::gpu
