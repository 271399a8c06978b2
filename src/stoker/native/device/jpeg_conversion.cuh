// SPDX-License-Identifier: Apache-2.0
// Conversion of samples to pixels: upsampling, colour and orientation, only for the pixels of the window. T is the type
// of the pixels' elements (device/pixel_elements.cuh).
#pragma once
#include "device/pixel_elements.cuh"
#include "device/planar_samples.cuh"
#include "device/row_blocks.cuh"
#include "shared/jpeg_arithmetic.cuh"
#include "shared/jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;
using namespace planar;

STOKER_DEVICE uint32_t four_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a | b << 8 | c << 16 | d << 24;
}

// Return a component's samples around the window.
STOKER_DEVICE Samples samples_of(const RowBuffers& buffers, const Row& row, uint32_t index) {
  const Plane& p = row.plane[index];
  const int32_t first = p.size * p.first_column, end = first + p.size * p.columns;
  const uint8_t* const corner =
      pointer<const uint8_t>(buffers.samples[index]) - int64_t{p.size} * p.first_row * buffers.pitch[index] - first;
  return {corner, buffers.pitch[index], p, first, (end < p.width ? end : p.width) - 1};
}

STOKER_DEVICE Pixel convert(const Row& row, int32_t a, int32_t b, int32_t c) {
  if (row.colour == Colour::YCbCr && row.wanted <= Wanted::BGR) return ycc_to_rgb(a, b, c);
  if (row.colour == Colour::RGB && row.wanted == Wanted::YCbCr) return rgb_to_ycc(a, b, c);
  if (row.colour == Colour::RGB && row.wanted == Wanted::GRAY) return {luma(a, b, c), 0, 0};
  return {static_cast<uint8_t>(a), static_cast<uint8_t>(b), static_cast<uint8_t>(c)};
}

// Compute the planes' values of four pixels. Both colour models decide which planes are read. The description of a
// plane is loaded again for each four pixels, since keeping it would take registers and thus reduce the number of
// resident warps.
STOKER_DEVICE void four_pixels(const Row& row, const RowBuffers& buffers, int32_t x, int32_t y, Pixel* out) {
  int32_t plane[kMaxPlanes][4];
  full_size(samples_of(buffers, row, 0), x, y, plane[0]);
  const bool luma_alone = row.colour == Colour::Gray || (row.colour == Colour::YCbCr && row.wanted == Wanted::GRAY);
  STOKER_UNROLL for (uint32_t p = 1; p < kMaxPlanes; ++p) {
    if (!luma_alone) full_size(samples_of(buffers, row, p), x, y, plane[p]);
    STOKER_UNROLL for (int i = 0; i < 4; ++i) if (luma_alone) plane[p][i] =
        row.wanted == Wanted::YCbCr ? 128 : plane[0][i];
  }
  STOKER_UNROLL for (int i = 0; i < 4; ++i) out[i] = convert(row, plane[0][i], plane[1][i], plane[2][i]);
}

template <class T>
STOKER_DEVICE void store_pixel(const Row& row, uint64_t at, Pixel p) {
  T* const out = pointer<T>(at);
  const bool bgr = row.wanted == Wanted::BGR;
  out[0] = element_of<T>(bgr ? p.c : p.a);
  if (row.wanted == Wanted::GRAY) return;
  out[1] = element_of<T>(p.b);
  out[2] = element_of<T>(bgr ? p.a : p.c);
}

// Store four pixels of three elements each to an address that is a multiple of the size of four elements.
template <class T>
STOKER_DEVICE void store_four(uint64_t at, const Pixel* p) {
  T* const out = pointer<T>(at);
  store_elements<T>(out, four_bytes(p[0].a, p[0].b, p[0].c, p[1].a));
  store_elements<T>(out + 4, four_bytes(p[1].b, p[1].c, p[2].a, p[2].b));
  store_elements<T>(out + 8, four_bytes(p[2].c, p[3].a, p[3].b, p[3].c));
}

// Number of groups of four pixels per row of the window. It is one more than the width needs, since the first group
// begins before the window, so that all others are stored to multiples of the size of four elements.
STOKER_DEVICE uint32_t groups_per_row(uint32_t width) { return width / kPixelsPerGroup + 2; }

// ---- four pixels at a time in words, inside of the window, to RGB or BGR ----

// Convert and store four pixels of three elements each to an address that is a multiple of the size of four elements,
// from samples that may lie outside of the window.
template <Spread kSpread, class T>
STOKER_DEVICE void convert_four(const Samples* samples, int32_t x, int32_t y, bool bgr, uint64_t to) {
  const auto load = [](const uint8_t* line, int32_t at) { return load_four(line, at); };
  const Quad luma = four_samples<Spread::None>(samples[0], x, y, load);
  const Quad cb = four_samples<kSpread>(samples[1], x, y, load), cr = four_samples<kSpread>(samples[2], x, y, load);
  WidePixel p[4];
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    p[i] = ycc_to_wide(luma.at(i), cb.at(i), cr.at(i));
    const int32_t first = bgr ? p[i].b : p[i].r;
    p[i].b = bgr ? p[i].r : p[i].b;
    p[i].r = first;
  }
  T* const out = pointer<T>(to);
  store_elements<T>(out, saturated_four(p[0].r, p[0].g, p[0].b, p[1].r));
  store_elements<T>(out + 4, saturated_four(p[1].g, p[1].b, p[2].r, p[2].g));
  store_elements<T>(out + 8, saturated_four(p[2].b, p[3].r, p[3].g, p[3].b));
}

// Division of a window into groups. Inner groups, all of whose samples and pixels exist, use the word form. Outer
// groups come after them in the order of work, so that warps do not diverge, and are converted pixel by pixel.
struct Grouping {
  uint32_t per_row, inner, inner_first, height;  // a row has `inner` inner groups from `inner_first` on

  STOKER_DEVICE Grouping(const Row& row, bool in_words)
      : per_row(groups_per_row(static_cast<uint32_t>(row.width))),
        inner(0),
        inner_first(2),
        height(static_cast<uint32_t>(row.height)) {
    if (in_words && row.width >= 15) inner = (static_cast<uint32_t>(row.width) - 7) / 4 - 1;
  }
  STOKER_DEVICE uint32_t inner_groups() const { return inner * height; }
  STOKER_DEVICE uint32_t groups() const { return per_row * height; }
};

// Position of a group of pixels; x counts from the window's first column.
template <class T>
struct Group4 {
  uint64_t line;
  int32_t x, y;

  STOKER_DEVICE Group4(const Row& row, uint32_t line_number, uint32_t group)
      : line(row.out + static_cast<uint64_t>(static_cast<int64_t>(line_number) * row.step_y)),
        y(static_cast<int32_t>(line_number)) {
    // 3 * head elements further, the address is a multiple of the size of four elements.
    const int32_t head = static_cast<int32_t>(line / sizeof(T) & 3);
    x = static_cast<int32_t>(group * kPixelsPerGroup) - 4 + head;
  }
};

template <Spread kSpread, class T>
STOKER_DEVICE void inner_pixels(const Row& row, const RowBuffers& buffers, const Grouping& all, uint32_t begin,
                                uint32_t end) {
  uint32_t g = begin + thread_index();
  if (g >= end) return;
  const Samples samples[] = {samples_of(buffers, row, 0), samples_of(buffers, row, 1), samples_of(buffers, row, 2)};
  const bool bgr = row.wanted == Wanted::BGR;
  uint32_t y = g / all.inner, at = g - y * all.inner;
  const uint32_t rows = thread_count() / all.inner, rest = thread_count() - rows * all.inner;
  for (;;) {
    const Group4<T> group(row, y, all.inner_first + at);
    convert_four<kSpread, T>(samples, row.x0 + group.x, row.y0 + group.y, bgr,
                             group.line + 3 * sizeof(T) * static_cast<uint64_t>(group.x));
    g += thread_count();
    if (g >= end) return;
    y += rows;
    at += rest;
    if (at >= all.inner) at -= all.inner, ++y;
  }
}

// Convert the outer groups, for any format.
template <class T>
STOKER_DEVICE void outer_pixels(const Row& row, const RowBuffers& buffers, const Grouping& all, uint32_t begin,
                                uint32_t end) {
  const uint32_t per_row = all.per_row - all.inner;
  const bool packed = row.step_x == int64_t{3 * sizeof(T)} && row.wanted != Wanted::GRAY;
  for (uint32_t g = begin + thread_index(); g < end; g += thread_count()) {
    const uint32_t y = g / per_row, at = g - y * per_row;
    const Group4<T> group(row, y, all.inner && at >= all.inner_first ? at + all.inner : at);
    const int32_t x = group.x;
    Pixel p[kPixelsPerGroup];
    four_pixels(row, buffers, row.x0 + x, row.y0 + group.y, p);
    if (packed && x >= 0 && x + 4 <= row.width) {
      if (row.wanted == Wanted::BGR) {
        for (int i = 0; i < 4; ++i) p[i] = {p[i].c, p[i].b, p[i].a};
      }
      store_four<T>(group.line + 3 * sizeof(T) * static_cast<uint64_t>(x), p);
      continue;
    }
    for (int32_t i = 0; i < 4; ++i)
      if (x + i >= 0 && x + i < row.width)
        store_pixel<T>(row, group.line + static_cast<uint64_t>((x + i) * row.step_x), p[i]);
  }
}

// Return whether the row's inner groups can use the word form.
template <class T>
STOKER_DEVICE bool in_words(const Row& row) {
  const Plane* const p = row.plane;
  return row.step_x == int64_t{3 * sizeof(T)} && row.wanted <= Wanted::BGR && row.colour == Colour::YCbCr &&
         p[0].spread == Spread::None && p[1].spread == p[2].spread && p[1].spread != Spread::Repeat;
}

template <class T>
STOKER_DEVICE void convert_pixels(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t starts,
                                  uint64_t count, uint64_t first) {
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  if (pointer<const uint32_t>(statuses)[buffers.row] & kFailures) return;
  const Grouping all(row, in_words<T>(row));
  const uint32_t groups = all.groups(), inner = all.inner_groups(), begin = work.number * kGroupsPerCta;
  const uint32_t end = begin + kGroupsPerCta < groups ? begin + kGroupsPerCta : groups;
  const uint32_t inner_end = end < inner ? end : inner;
  if (begin < inner_end) {
    switch (row.plane[1].spread) {
      case Spread::None: inner_pixels<Spread::None, T>(row, buffers, all, begin, inner_end); break;
      case Spread::Width: inner_pixels<Spread::Width, T>(row, buffers, all, begin, inner_end); break;
      case Spread::Height: inner_pixels<Spread::Height, T>(row, buffers, all, begin, inner_end); break;
      default: inner_pixels<Spread::Both, T>(row, buffers, all, begin, inner_end);
    }
  }
  if (end > inner) outer_pixels<T>(row, buffers, all, (begin > inner ? begin : inner) - inner, end - inner);
}

}  // namespace stoker::jpeg::gpu
