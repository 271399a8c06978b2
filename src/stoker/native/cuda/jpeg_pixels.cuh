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

STOKER_CONSTANT ZigZag kZigZag;

struct TransformShared {
  int32_t tile[kTransformThreads / 8 * kTileWords];
  int16_t quantiser[64];         // columns one after the other
  alignas(4) uint8_t place[64];  // in a tile, of each coefficient in memory
};

STOKER_DEVICE void load_tables(const Row& row, const Plane& plane, TransformShared& shared) {
  const uint8_t* const from = pointer<const uint8_t>(row.file) + plane.quantiser;
  for (uint32_t i = thread_index(); i < 64; i += thread_count()) {
    const uint32_t y = kZigZag.row[i], x = kZigZag.column[i];
    shared.quantiser[8 * x + y] =
        static_cast<int16_t>(plane.wide ? from[2 * i] << 8 | from[2 * i + 1] : static_cast<int>(from[i]));
    shared.place[i] = static_cast<uint8_t>(row.made ? kTilePitch * (i / 8) + i % 8 : kTilePitch * y + x);
  }
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

// What one of a block's eight lanes works with.
struct Lane {
  uint32_t index;         // 0 to 7: of a column, then of a row
  int32_t* tile;          // the block's, rows kTilePitch apart
  uint64_t out;           // of the block's first sample
  uint64_t pitch;
  bool there;             // the others take part in what all lanes of a warp do together
};

// Eight coefficients that follow each other in memory to their places.
STOKER_DEVICE void scatter(const Words4& coefficients, const TransformShared& shared, const Lane& lane) {
  const uint32_t* const places = reinterpret_cast<const uint32_t*>(shared.place) + 2 * lane.index;
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    const uint32_t bits = coefficients.v[i / 2] >> (16 * (i % 2));
    lane.tile[places[i / 4] >> (8 * (i % 4)) & 255] = static_cast<int16_t>(bits);
  }
}

// A lane's eighth of block `n` of the plane.
STOKER_DEVICE Words4 load_coefficients(const Row& row, const Place& place, const Plane& plane, uint32_t index,
                                       uint32_t n, const Lane& lane) {
  Words4 out = {};
  if (!lane.there) return out;
  const Words4* const plane_begin = pointer<const Words4>(place.coefficients) + 8 * uint64_t{place.first_home[index]};
  if (row.made && plane.size == 1) {  // nothing but means
    out.v[0] = reinterpret_cast<const uint16_t*>(plane_begin)[n];
    return out;
  }
  out = plane_begin[8 * uint64_t{n} + lane.index];
  if (!row.made && lane.index == 0)
    out.v[0] |= static_cast<uint16_t>(
        predicted_dc(row, place, plane, plane.first_column + n % plane.columns, plane.first_row + n / plane.columns));
  return out;
}

// Whether `mine` is so for any of the block's lanes.
STOKER_DEVICE bool any_of_block(bool mine) {
  return (ballot(mine) >> (thread_index() % kWarp / 8 * 8) & 255) != 0;
}

STOKER_DEVICE uint32_t four_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a | b << 8 | c << 16 | d << 24;
}

STOKER_DEVICE void read_tile_row(const Lane& lane, int32_t* out) {
  warp_barrier();
  for (uint32_t i = 0; i < 8; ++i) out[i] = lane.tile[lane.index * kTilePitch + i];
  warp_barrier();
}

// A column of coefficients, in full size.
STOKER_DEVICE void transform_full(const Lane& lane, const int16_t* quantiser, int32_t* in) {
  const bool one_row = !any_of_block((in[1] | in[2] | in[3] | in[4] | in[5] | in[6] | in[7]) != 0);
  int32_t column[8];
  for (int i = 0; i < 8; ++i) in[i] = dequantised(in[i], quantiser[i]);
  column8(in, one_row, column);
  for (uint32_t i = 0; i < 8; ++i) lane.tile[i * kTilePitch + lane.index] = column[i];
  read_tile_row(lane, in);
  if (!lane.there) return;
  uint8_t s[8];
  row8(in, s);
  uint32_t* const out = pointer<uint32_t>(lane.out + lane.index * lane.pitch);
  out[0] = four_bytes(s[0], s[1], s[2], s[3]);
  out[1] = four_bytes(s[4], s[5], s[6], s[7]);
}

// The same to four or two samples a side.
template <uint32_t kSize>
STOKER_DEVICE void transform_reduced(const Lane& lane, const int16_t* quantiser, int32_t* in) {
  constexpr int kShift = kSize == 4 ? 12 : 13;
  constexpr auto transform = kSize == 4 ? transform4 : transform2;
  const int32_t below = in[1] | in[2] | in[3] | in[4] | in[5] | in[6] | in[7];
  const bool flat = !any_of_block((below | (lane.index ? in[0] : 0)) != 0);
  int32_t column[kSize];
  for (int i = 0; i < 8; ++i) in[i] = dequantised(in[i], quantiser[i]);
  transform(in, kShift, column);
  const int32_t dc = lane.index == 0 ? in[0] : 0;
  for (uint32_t i = 0; i < kSize; ++i) lane.tile[i * kTilePitch + lane.index] = flat ? dc : column[i];
  read_tile_row(lane, in);
  if (!lane.there || lane.index >= kSize) return;
  int32_t samples[kSize];
  transform(in, kShift + 7, samples);
  uint8_t* const out = pointer<uint8_t>(lane.out + lane.index * lane.pitch);
  for (uint32_t i = 0; i < kSize; ++i) out[i] = flat ? reduced_flat_sample(in[0]) : to_sample(samples[i]);
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_jpeg_transform(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t items) {
  STOKER_SHARED(TransformShared, shared);
  const Item item = pointer<const Item>(items)[block_index()];
  const uint32_t index = item.place_and_plane >> 30;
  const Place& place = pointer<const Place>(places)[item.place_and_plane & 0x3FFFFFFF];
  const Row& row = pointer<const Row>(rows)[place.row];
  const Plane& plane = row.plane[index];
  if (pointer<const uint32_t>(statuses)[place.row] & kFailures) return;
  load_tables(row, plane, shared);
  block_barrier();

  const uint32_t group = thread_index() / 8, groups = thread_count() / 8;
  const uint32_t blocks = static_cast<uint32_t>(plane.columns) * plane.rows;
  Lane lane = {thread_index() % 8, shared.tile + group * kTileWords, 0, place.pitch[index], false};
  const int16_t* const quantiser = shared.quantiser + 8 * lane.index;
  for (uint32_t n = item.first + group; n < item.first + kBlocksPerItem; n += groups) {
    lane.there = n < blocks;
    const uint32_t x = n % plane.columns, y = n / plane.columns;
    lane.out = place.samples[index] + y * plane.size * lane.pitch + plane.size * x;
    const Words4 coefficients = load_coefficients(row, place, plane, index, n, lane);
    scatter(coefficients, shared, lane);
    warp_barrier();
    int32_t column[8];
    for (uint32_t i = 0; i < 8; ++i) column[i] = lane.tile[i * kTilePitch + lane.index];
    warp_barrier();
    if (plane.size == 8) transform_full(lane, quantiser, column);
    else if (plane.size == 4) transform_reduced<4>(lane, quantiser, column);
    else if (plane.size == 2) transform_reduced<2>(lane, quantiser, column);
    else if (lane.there && lane.index == 0) *pointer<uint8_t>(lane.out) = mean_sample(column[0], quantiser[0]);
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
               static_cast<int64_t>(row.plane[index].size * row.plane[index].first_row) * place.pitch[index] -
               row.plane[index].size * row.plane[index].first_column),
        pitch(place.pitch[index]),
        plane(row.plane[index]),
        first(plane.size * plane.first_column) {
    const int32_t behind = first + plane.size * plane.columns;
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
  if (pointer<const uint32_t>(statuses)[place.row] & kFailures) return;
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
