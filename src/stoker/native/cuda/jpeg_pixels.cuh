// SPDX-License-Identifier: Apache-2.0
// From samples to pixels: upsampling, colour and orientation, for the pixels of the window alone.
#pragma once
#include "jpeg_arithmetic.cuh"
#include "jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

STOKER_DEVICE uint32_t four_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a | b << 8 | c << 16 | d << 24;
}

// ---- upsampling and colour ----

// A component's samples around the window.
struct Samples {
  const uint8_t* corner;  // where sample (0, 0) of the image would be
  uint32_t pitch;
  const Plane& plane;
  int32_t first, last;  // columns that are there

  STOKER_DEVICE Samples(const Place& place, const Row& row, uint32_t index)
      : corner(pointer<const uint8_t>(place.samples[index]) -
               int64_t{row.plane[index].size} * row.plane[index].first_row * place.pitch[index] -
               row.plane[index].size * row.plane[index].first_column),
        pitch(place.pitch[index]),
        plane(row.plane[index]),
        first(plane.size * plane.first_column) {
    const int32_t behind = first + plane.size * plane.columns;
    last = (behind < plane.width ? behind : plane.width) - 1;
  }
  STOKER_DEVICE const uint8_t* line(int32_t y) const { return corner + int64_t{y} * pitch; }
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

// The planes' part in four pixels: which are read at all depends on both colour models. What is known of planes is looked
// up for each four: it would take the registers that let more warps work.
STOKER_DEVICE void four_pixels(const Row& row, const Place& place, int32_t x, int32_t y, Pixel* out) {
  int32_t plane[kMaxPlanes][4];
  full_size(Samples(place, row, 0), x, y, plane[0]);
  const bool luma_alone = row.colour == Colour::Gray || (row.colour == Colour::YCbCr && row.wanted == Wanted::GRAY);
  STOKER_UNROLL for (uint32_t p = 1; p < kMaxPlanes; ++p) {
    if (!luma_alone) full_size(Samples(place, row, p), x, y, plane[p]);
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
STOKER_DEVICE void inner_pixels(const Row& row, const Place& place, const Grouping& all, uint32_t begin, uint32_t end) {
  uint32_t g = begin + thread_index();
  if (g >= end) return;
  const Samples samples[] = {{place, row, 0}, {place, row, 1}, {place, row, 2}};
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
STOKER_DEVICE void outer_pixels(const Row& row, const Place& place, const Grouping& all, uint32_t begin, uint32_t end) {
  const uint32_t per_row = all.per_row - all.inner;
  const bool packed = row.step_x == 3 && row.wanted != Wanted::GRAY;
  for (uint32_t g = begin + thread_index(); g < end; g += thread_count()) {
    const uint32_t y = g / per_row, at = g - y * per_row;
    const Group4 group(row, y, all.inner && at >= all.inner_first ? at + all.inner : at);
    const int32_t x = group.x;
    Pixel p[kPixelsPerGroup];
    four_pixels(row, place, row.x0 + x, row.y0 + group.y, p);
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

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_jpeg_pixels(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t items) {
  const Item item = pointer<const Item>(items)[block_index()];
  const Place& place = pointer<const Place>(places)[item.place_and_plane];
  const Row& row = pointer<const Row>(rows)[place.row];
  if (pointer<const uint32_t>(statuses)[place.row] & kFailures) return;
  const Grouping all(row, in_words(row));
  const uint32_t groups = all.groups(), inner = all.inner_groups();
  const uint32_t end = item.first + kGroupsPerItem < groups ? item.first + kGroupsPerItem : groups;
  const uint32_t inner_end = end < inner ? end : inner;
  if (item.first < inner_end) {
    switch (row.plane[1].spread) {
      case Spread::None: inner_pixels<Spread::None>(row, place, all, item.first, inner_end); break;
      case Spread::Width: inner_pixels<Spread::Width>(row, place, all, item.first, inner_end); break;
      case Spread::Height: inner_pixels<Spread::Height>(row, place, all, item.first, inner_end); break;
      default: inner_pixels<Spread::Both>(row, place, all, item.first, inner_end);
    }
  }
  if (end > inner) outer_pixels(row, place, all, (item.first > inner ? item.first : inner) - inner, end - inner);
}

}  // namespace stoker::jpeg::gpu
