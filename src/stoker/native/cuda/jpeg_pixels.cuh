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

constexpr uint32_t kCoefficientPitch = 72;  // of a block: 64, and as much as makes banks differ

struct TransformShared {
  // Per block, columns one after the other.
  alignas(16) uint16_t coefficient[kTransformThreads / 8 * kCoefficientPitch];
  alignas(16) int32_t tile[kTransformThreads / 8 * kTileWords];
  alignas(16) uint16_t quantiser[64];  // columns one after the other
  alignas(4) uint8_t place[64];        // where each coefficient in memory goes
  struct {
    uint32_t offset;  // of the first sample among the plane's
    uint32_t dc;      // in 16 bits; 0 where the host made it
  } block[kBlocksPerItem];
};

STOKER_DEVICE void load_tables(const Row& row, const Plane& plane, TransformShared& shared) {
  const uint8_t* const from = pointer<const uint8_t>(row.file) + plane.quantiser;
  for (uint32_t i = thread_index(); i < 64; i += thread_count()) {
    const uint32_t y = kZigZag.row[i], x = kZigZag.column[i];
    shared.quantiser[8 * x + y] =
        static_cast<uint16_t>(plane.wide ? from[2 * i] << 8 | from[2 * i + 1] : static_cast<int>(from[i]));
    shared.place[i] = static_cast<uint8_t>(row.made ? 8 * (i % 8) + i / 8 : 8 * x + y);
  }
}

// The DC coefficient of a block: the running sum within its segment.
STOKER_DEVICE uint32_t predicted_dc(const Row& row, const Place& place, const Plane& plane, uint32_t column,
                                    uint32_t block_row) {
  const int16_t* const dc = pointer<const int16_t>(place.dc);
  const uint32_t mcu = block_row / plane.v * row.mcu_columns + column / plane.h;
  const uint32_t inside = block_row % plane.v * plane.h + column % plane.h;
  uint32_t sum = static_cast<uint32_t>(dc[mcu * row.blocks + plane.first_block + inside]);
  if (row.restart_interval && mcu >= row.restart_interval) {
    const uint32_t last = mcu / row.restart_interval * row.restart_interval - 1;
    sum -= static_cast<uint32_t>(dc[last * row.blocks + plane.first_block + plane.h * plane.v - 1]);
  }
  return static_cast<uint16_t>(sum);
}

// What one thread finds out about a block for the eight that transform it.
STOKER_DEVICE void find_blocks(const Row& row, const Place& place, const Plane& plane, uint32_t index, uint32_t begin,
                               uint32_t end, TransformShared& shared) {
  for (uint32_t n = begin + thread_index(); n < end; n += thread_count()) {
    const uint32_t y = n / plane.columns, x = n - y * plane.columns;
    shared.block[n - begin] = {plane.size * (y * place.pitch[index] + x),
                               row.made ? 0 : predicted_dc(row, place, plane, plane.first_column + x, plane.first_row + y)};
  }
}

// What one of a block's eight lanes works with.
struct Lane {
  uint32_t index;  // 0 to 7: of a column, then of a row
  int32_t* tile;   // the block's
  uint64_t out;    // of the block's first sample
  uint64_t pitch;
  bool there;      // the others take part in what all lanes of a warp do together
};

// A lane's eighth of block `n` of the plane.
STOKER_DEVICE Words4 load_coefficients(const Row& row, const Place& place, const Plane& plane, uint32_t index,
                                       uint32_t n, const Lane& lane) {
  Words4 out = {};
  if (!lane.there) return out;
  const Words4* const plane_begin = pointer<const Words4>(place.coefficients) + 8 * uint64_t{place.first_home[index]};
  if (row.made && plane.size == 1) {  // nothing but means
    if (lane.index == 0) out.v[0] = reinterpret_cast<const uint16_t*>(plane_begin)[n];
    return out;
  }
  return plane_begin[8 * uint64_t{n} + lane.index];
}

// Eight coefficients that follow each other in memory to their places.
STOKER_DEVICE void scatter(const Words4& coefficients, const TransformShared& shared, const Lane& lane, uint16_t* to) {
  const uint32_t* const places = reinterpret_cast<const uint32_t*>(shared.place) + 2 * lane.index;
  STOKER_UNROLL for (int i = 0; i < 8; ++i)
    to[places[i / 4] >> (8 * (i % 4)) & 255] = static_cast<uint16_t>(coefficients.v[i / 2] >> (16 * (i % 2)));
}

// Whether `mine` is so for any of the block's lanes.
STOKER_DEVICE bool any_of_block(bool mine) {
  return (ballot(mine) >> (thread_index() % kWarp / 8 * 8) & 255) != 0;
}

STOKER_DEVICE uint32_t four_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a | b << 8 | c << 16 | d << 24;
}

// Eight numbers of 16 bits each, as a column of coefficients or quantisers lies in shared memory.
struct Column {
  Words4 pairs;
  STOKER_DEVICE uint32_t at(int i) const { return i % 2 ? pairs.v[i / 2] >> 16 : pairs.v[i / 2]; }  // in the lower bits
  STOKER_DEVICE bool below() const { return (pairs.v[0] >> 16 | pairs.v[1] | pairs.v[2] | pairs.v[3]) != 0; }
};

STOKER_DEVICE void dequantise(const Column& column, const Column& quantiser, int32_t* out) {
  STOKER_UNROLL for (int i = 0; i < 8; ++i) out[i] = static_cast<int16_t>(column.at(i) * quantiser.at(i));
}

// A column of coefficients, in full size. Between columns and rows numbers have 16 bits, two rows to a word.
STOKER_DEVICE void transform_full(const Lane& lane, const Column& quantiser, const Column& coefficients) {
  const bool one_row = !any_of_block(coefficients.below());
  int32_t in[8];
  dequantise(coefficients, quantiser, in);
  uint32_t sums[8];
  transform8(in, 1u << (kColumnShift - 1), sums);
  const uint32_t flat = static_cast<uint32_t>(flat_column(in[0])) & 0xFFFF;
  STOKER_UNROLL for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t pair = saturated_pair16(static_cast<int32_t>(sums[2 * i]) >> kColumnShift,
                                           static_cast<int32_t>(sums[2 * i + 1]) >> kColumnShift);
    lane.tile[8 * i + lane.index] = static_cast<int32_t>(one_row ? flat | flat << 16 : pair);
  }
  warp_barrier();
  const Words4* const row = reinterpret_cast<const Words4*>(lane.tile + 8 * (lane.index / 2));
  const Words4 left = row[0], right = row[1];
  warp_barrier();
  if (!lane.there) return;
  const uint32_t shift = lane.index % 2 ? 0 : 16;
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    in[i] = static_cast<int32_t>(left.v[i] << shift) >> 16;
    in[4 + i] = static_cast<int32_t>(right.v[i] << shift) >> 16;
  }
  transform8(in, 1u << (kRowShift - 1), sums);
  uint32_t* const out = pointer<uint32_t>(lane.out + lane.index * lane.pitch);
  int32_t sample[8];
  STOKER_UNROLL for (int i = 0; i < 8; ++i) sample[i] = (static_cast<int32_t>(sums[i]) >> kRowShift) + 128;
  out[0] = saturated_four(sample[0], sample[1], sample[2], sample[3]);
  out[1] = saturated_four(sample[4], sample[5], sample[6], sample[7]);
}

STOKER_DEVICE void read_tile_row(const Lane& lane, int32_t* out) {
  warp_barrier();
  for (uint32_t i = 0; i < 8; ++i) out[i] = lane.tile[lane.index * kTilePitch + i];
  warp_barrier();
}

// The same to four or two samples a side.
template <uint32_t kSize>
STOKER_DEVICE void transform_reduced(const Lane& lane, const Column& quantiser, const Column& coefficients) {
  constexpr int kShift = kSize == 4 ? 12 : 13;
  constexpr auto transform = kSize == 4 ? transform4 : transform2;
  const uint32_t top = coefficients.at(0) & 0xFFFF;
  const bool flat = !any_of_block(coefficients.below() || (lane.index && top));
  int32_t in[8], column[kSize];
  dequantise(coefficients, quantiser, in);
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
  const uint32_t blocks = static_cast<uint32_t>(plane.columns) * plane.rows;
  const uint32_t end = item.first + kBlocksPerItem < blocks ? item.first + kBlocksPerItem : blocks;
  load_tables(row, plane, shared);
  find_blocks(row, place, plane, index, item.first, end, shared);
  block_barrier();

  const uint32_t group = thread_index() / 8, groups = thread_count() / 8;
  Lane lane = {thread_index() % 8, shared.tile + group * kTileWords, 0, place.pitch[index], false};
  uint16_t* const own = shared.coefficient + group * kCoefficientPitch;
  const Column quantiser = {reinterpret_cast<const Words4*>(shared.quantiser)[lane.index]};
  for (uint32_t n = item.first + group; n < item.first + kBlocksPerItem; n += groups) {
    lane.there = n < end;
    Words4 coefficients = load_coefficients(row, place, plane, index, n, lane);
    if (lane.there) {
      lane.out = place.samples[index] + shared.block[n - item.first].offset;
      if (lane.index == 0) coefficients.v[0] |= shared.block[n - item.first].dc;
    }
    scatter(coefficients, shared, lane, own);
    warp_barrier();
    const Column column = {reinterpret_cast<const Words4*>(own)[lane.index]};
    warp_barrier();
    if (plane.size == 8) transform_full(lane, quantiser, column);
    else if (plane.size == 4) transform_reduced<4>(lane, quantiser, column);
    else if (plane.size == 2) transform_reduced<2>(lane, quantiser, column);
    else if (lane.there && lane.index == 0)
      *pointer<uint8_t>(lane.out) =
          mean_sample(static_cast<int16_t>(column.at(0)), static_cast<int16_t>(quantiser.at(0)));
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

// ---- the same four at a time in words, inside of the window, to RGB or BGR ----

// Bytes [x, x + 4) of a line of samples, all of which are there.
STOKER_DEVICE uint32_t load_four(const uint8_t* line, int32_t x) {
  const uint64_t at = reinterpret_cast<uint64_t>(line) + static_cast<uint64_t>(int64_t{x});
  const uint32_t low = *pointer<const uint32_t>(at & ~uint64_t{3});
  return funnel_right(*pointer<const uint32_t>((at + 3) & ~uint64_t{3}), low, 8 * static_cast<uint32_t>(at & 3));
}

// Four samples, the first and the third in one word, the others in the other, 16 bits each.
struct Quad {
  uint32_t even, odd;
  STOKER_DEVICE int32_t at(int i) const {
    const uint32_t word = i % 2 ? odd : even;
    return static_cast<int32_t>(i / 2 ? word >> 16 : word & 0xFFFF);
  }
};
constexpr uint32_t kBoth = 0x10001, kLowBytes = 0x00FF00FF;

STOKER_DEVICE Quad quad_of(uint32_t bytes) { return {bytes & kLowBytes, bytes >> 8 & kLowBytes}; }

// `between` and `corner` of two at a time.
STOKER_DEVICE uint32_t between_two(uint32_t near, uint32_t far, uint32_t bias) {
  return (3 * near + far + bias) >> 2 & kLowBytes;
}
STOKER_DEVICE uint32_t corner_two(uint32_t near, uint32_t far, uint32_t bias) {
  return (3 * near + far + bias) >> 4 & kLowBytes;
}

// A component at full size, at four pixels from (x, y) on.
template <Spread kSpread>
STOKER_DEVICE Quad four_samples(const Samples& s, int32_t x, int32_t y) {
  if constexpr (kSpread == Spread::None) return quad_of(load_four(s.line(y), x));
  if constexpr (kSpread == Spread::Height) {
    const Quad near = quad_of(load_four(s.line(y / 2), x));
    const Quad far = quad_of(load_four(s.line(neighbour(y, s.plane.height)), x));
    const uint32_t bias = (y & 1 ? 2 : 1) * kBoth;
    return {between_two(near.even, far.even, bias), between_two(near.odd, far.odd, bias)};
  }
  // The inputs that are next to each other: first and second, second and third, third and fourth.
  const uint32_t bytes = load_four(s.line(kSpread == Spread::Both ? y / 2 : y), (x >> 1) - 1);
  uint32_t left, middle, right;
  if constexpr (kSpread == Spread::Width) {
    left = choose_bytes(bytes, 0, 0x4140);
    middle = choose_bytes(bytes, 0, 0x4241);
    right = choose_bytes(bytes, 0, 0x4342);
  } else {
    const Quad near = quad_of(bytes), far = quad_of(load_four(s.line(neighbour(y, s.plane.height)), (x >> 1) - 1));
    const uint32_t even = 3 * near.even + far.even, odd = 3 * near.odd + far.odd;
    left = choose_bytes(even, odd, 0x5410);
    middle = choose_bytes(odd, even, 0x7610);
    right = choose_bytes(even, odd, 0x7632);
  }
  const bool second = x & 1;  // of a pair is the first output; it leans to the right
  if constexpr (kSpread == Spread::Width)
    return {between_two(middle, second ? right : left, (second ? 2 : 1) * kBoth),
            between_two(second ? right : middle, second ? middle : right, (second ? 1 : 2) * kBoth)};
  else
    return {corner_two(middle, second ? right : left, (second ? 7 : 8) * kBoth),
            corner_two(second ? right : middle, second ? middle : right, (second ? 8 : 7) * kBoth)};
}

// Four pixels of three bytes each to an address that is a multiple of 4, of samples that may be between the window's.
template <Spread kSpread>
STOKER_DEVICE void convert_four(const Samples* samples, int32_t x, int32_t y, bool bgr, uint64_t to) {
  const Quad luma = four_samples<Spread::None>(samples[0], x, y);
  const Quad cb = four_samples<kSpread>(samples[1], x, y), cr = four_samples<kSpread>(samples[2], x, y);
  WidePixel p[4];
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    p[i] = ycc_to_wide(luma.at(i), cb.at(i), cr.at(i));
    const int32_t first = bgr ? p[i].b : p[i].r;
    p[i].b = bgr ? p[i].r : p[i].b;
    p[i].r = first;
  }
  uint32_t* const out = pointer<uint32_t>(to);
  out[0] = saturated_four(p[0].r, p[0].g, p[0].b, p[1].r);
  out[1] = saturated_four(p[1].g, p[1].b, p[2].r, p[2].g);
  out[2] = saturated_four(p[2].b, p[3].r, p[3].g, p[3].b);
}

// How the groups of a window are made: those of which all samples and pixels are there, in words; the others, behind
// them in the order of work so that warps hold one kind, one by one.
struct Grouping {
  uint32_t per_row, inner, inner_first, height;  // `inner` of a row, from the `inner_first` on

  STOKER_DEVICE Grouping(const Row& row, bool in_words)
      : per_row(groups_per_row(static_cast<uint32_t>(row.width))), inner(0), inner_first(2),
        height(static_cast<uint32_t>(row.height)) {
    if (in_words && row.width >= 15) inner = (static_cast<uint32_t>(row.width) - 7) / 4 - 1;
  }
  STOKER_DEVICE uint32_t inner_groups() const { return inner * height; }
  STOKER_DEVICE uint32_t groups() const { return per_row * height; }
};

// Where a group of pixels is: x counts from the window's first column.
struct Group4 {
  uint64_t line;
  int32_t x, y;

  STOKER_DEVICE Group4(const Row& row, uint32_t line_number, uint32_t group)
      : line(row.out + static_cast<uint64_t>(static_cast<int64_t>(line_number) * row.step_y)),
        y(static_cast<int32_t>(line_number)) {
    const int32_t head = static_cast<int32_t>(line & 3);  // 3 * head bytes on, an address is a multiple of 4
    x = static_cast<int32_t>(group * kPixelsPerGroup) - 4 + head;
  }
};

template <Spread kSpread>
STOKER_DEVICE void inner_pixels(const Row& row, const Samples* samples, const Grouping& all, uint32_t begin, uint32_t end) {
  uint32_t g = begin + thread_index();
  if (g >= end) return;
  const bool bgr = row.wanted == Wanted::BGR;
  uint32_t y = g / all.inner, at = g - y * all.inner;
  const uint32_t rows = thread_count() / all.inner, rest = thread_count() - rows * all.inner;
  for (;;) {
    const Group4 group(row, y, all.inner_first + at);
    convert_four<kSpread>(samples, row.x0 + group.x, row.y0 + group.y, bgr, group.line + 3 * static_cast<uint64_t>(group.x));
    g += thread_count();
    if (g >= end) return;
    y += rows;
    at += rest;
    if (at >= all.inner) at -= all.inner, ++y;
  }
}

// The groups of four that are left, in any form.
STOKER_DEVICE void outer_pixels(const Row& row, const Samples* samples, const Grouping& all, uint32_t begin, uint32_t end) {
  const uint32_t per_row = all.per_row - all.inner;
  const bool packed = row.step_x == 3 && row.wanted != Wanted::GRAY;
  for (uint32_t g = begin + thread_index(); g < end; g += thread_count()) {
    const uint32_t y = g / per_row, at = g - y * per_row;
    const Group4 group(row, y, all.inner && at >= all.inner_first ? at + all.inner : at);
    const int32_t x = group.x;
    Pixel p[kPixelsPerGroup];
    four_pixels(row, samples, row.x0 + x, row.y0 + group.y, p);
    if (packed && x >= 0 && x + 4 <= row.width) {
      if (row.wanted == Wanted::BGR) {
        for (int i = 0; i < 4; ++i) p[i] = {p[i].c, p[i].b, p[i].a};
      }
      store_four(group.line + 3 * static_cast<uint64_t>(x), p);
      continue;
    }
    for (int32_t i = 0; i < 4; ++i)
      if (x + i >= 0 && x + i < row.width)
        store_pixel(row, group.line + static_cast<uint64_t>((x + i) * row.step_x), p[i]);
  }
}

// Whether a row's pixels are made in words where they can be.
STOKER_DEVICE bool in_words(const Row& row) {
  const Plane* const p = row.plane;
  return row.step_x == 3 && row.wanted <= Wanted::BGR && row.colour == Colour::YCbCr && p[0].spread == Spread::None &&
         p[1].spread == p[2].spread && p[1].spread != Spread::Repeat;
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 3)
    stoker_jpeg_pixels(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t items) {
  const Item item = pointer<const Item>(items)[block_index()];
  const Place& place = pointer<const Place>(places)[item.place_and_plane];
  const Row& row = pointer<const Row>(rows)[place.row];
  if (pointer<const uint32_t>(statuses)[place.row] & kFailures) return;
  const uint32_t second = row.components > 1 ? 1 : 0, third = row.components > 2 ? 2 : 0;
  const Samples samples[] = {{place, row, 0}, {place, row, second}, {place, row, third}};
  const Grouping all(row, in_words(row));
  const uint32_t groups = all.groups(), inner = all.inner_groups();
  const uint32_t end = item.first + kGroupsPerItem < groups ? item.first + kGroupsPerItem : groups;
  const uint32_t inner_end = end < inner ? end : inner;
  if (item.first < inner_end) {
    switch (row.plane[1].spread) {
      case Spread::None: inner_pixels<Spread::None>(row, samples, all, item.first, inner_end); break;
      case Spread::Width: inner_pixels<Spread::Width>(row, samples, all, item.first, inner_end); break;
      case Spread::Height: inner_pixels<Spread::Height>(row, samples, all, item.first, inner_end); break;
      default: inner_pixels<Spread::Both>(row, samples, all, item.first, inner_end);
    }
  }
  if (end > inner) outer_pixels(row, samples, all, (item.first > inner ? item.first : inner) - inner, end - inner);
}

}  // namespace stoker::jpeg::gpu
