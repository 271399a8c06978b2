// SPDX-License-Identifier: Apache-2.0
#include "jpeg/picture.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stoker::jpeg {
namespace {

Upsample choose_upsample(int fx, int fy, int width, bool smooth) {
  if (fx == 1 && fy == 1) return Upsample::None;
  if (!smooth) return Upsample::Repeat;
  if (fx == 1 && fy == 2) return Upsample::Height;
  if (fx == 2 && fy == 1 && width > 2) return Upsample::Width;
  if (fx == 2 && fy == 2 && width > 2) return Upsample::Both;
  return Upsample::Repeat;
}

// Return the samples that output [begin, end) needs at ratio `factor`, with one neighbour on each side for the triangle
// filter.
Range source_range(int begin, int end, int factor, bool filtered, int size) {
  const int margin = filtered ? 1 : 0;
  return {std::max(begin / factor - margin, 0), std::min((end - 1) / factor + 1 + margin, size)};
}

// Return the block size of a component. In a scaled picture a subsampled component is transformed to larger blocks if
// that saves upsampling.
int block_size(const Info& info, const Component& c, int size) {
  const auto divides = [&](int factor, int most, int own) { return most * size % (own * factor) == 0; };
  int own = size;
  while (own < 8 && divides(2 * own, info.h_max, c.h) && divides(2 * own, info.v_max, c.v)) own *= 2;
  return own;
}

}  // namespace

Picture::Picture(const Info& info, const Target& target)
    : info_(info), to_(target), rows_(row_kernels()), size_(8 >> target.scale_log2) {
  if (to_.format == Format::ANY) to_.format = info.model == Model::Gray ? Format::GRAY : Format::RGB;
  for (int i = 0; i < planes(); ++i) plan_plane(i);
  next_y_ = to_.window.y0;
}

void Picture::plan_plane(int index) {
  const Component& c = info_.component[index];
  Plane& p = plane[index];
  p.h = c.h;
  p.v = c.v;
  p.size = block_size(info_, c, size_);
  p.stride = p.size == 1 ? 1 : 64;
  p.inverse_dct = inverse_dct(p.size);
  p.fx = info_.h_max * size_ / (c.h * p.size);
  p.fy = info_.v_max * size_ / (c.v * p.size);
  p.width = ceil_div(info_.width * c.h * p.size, 8 * info_.h_max);
  p.height = ceil_div(info_.height * c.v * p.size, 8 * info_.v_max);
  p.upsample = choose_upsample(p.fx, p.fy, p.width, size_ > 1);
  const bool luma_alone = info_.model == Model::Gray || info_.model == Model::YCbCr;
  if (to_.format == Format::GRAY && luma_alone && index > 0) return;
  const bool wide = p.upsample == Upsample::Width || p.upsample == Upsample::Both;
  const bool high = p.upsample == Upsample::Height || p.upsample == Upsample::Both;
  const Range x = source_range(to_.window.x0, to_.window.x1, p.fx, wide, p.width);
  const Range y = source_range(to_.window.y0, to_.window.y1, p.fy, high, p.height);
  p.columns = {x.begin / p.size, ceil_div(x.end, p.size)};
  p.rows = {y.begin / p.size, ceil_div(y.end, p.size)};
  p.ring_rows = static_cast<int>(std::bit_ceil(static_cast<unsigned>(2 * p.size * p.v)));
  const int begin = to_.window.x0 / p.fx;
  p.window_begin = begin - p.size * p.columns.begin;
  p.window_samples = (to_.window.x1 - 1) / p.fx + 1 - begin;
  p.window_skip = to_.window.x0 % p.fx;
  if (high) lag_ = 1;
}

int Picture::needed_mcu_rows() const {
  int end = 0;
  for (const Plane& p : plane)
    if (p.needed()) end = std::max(end, ceil_div(p.rows.end, p.v));
  return end;
}

void Picture::carve(Carver& pieces) {
  const size_t width = static_cast<size_t>(to_.window.x1 - to_.window.x0);
  const bool inks = info_.components == 4;
  sums_ = pieces.take<int16_t>(width / 2 + 4 + kRowSlack);
  neutral_ = pieces.take<uint8_t>(info_.model == Model::Gray ? width + kRowSlack : 0);
  const bool converted = to_.format == Format::Planes && info_.model == Model::RGB;
  pixels_ = pieces.take<uint8_t>((inks && to_.format == Format::GRAY) || converted ? 3 * width : 0);
  for (Plane& p : plane) {
    if (!p.needed()) continue;
    p.pitch = (kLeftMargin + p.size * p.columns.size() + kRowSlack + 31) / 32 * 32;
    p.ring = pieces.take<uint8_t>(static_cast<size_t>(p.pitch * p.ring_rows));
    p.full = pieces.take<uint8_t>(p.upsample == Upsample::None ? 0 : width + 8 + kRowSlack);
  }
  if (to_.sink) {
    const size_t bytes = width * static_cast<size_t>(channels(info_, to_.format));
    to_.pitch = static_cast<ptrdiff_t>((std::max(bytes, static_cast<size_t>(to_.sink->room)) + 63) / 64 * 64);
    const size_t all = static_cast<size_t>(to_.pitch * to_.sink->rows);
    to_.dst = pieces.take<uint8_t>(all);
    if (to_.dst) std::memset(to_.dst, 0, all);
  }
  if (neutral_) std::memset(neutral_, 128, info_.model == Model::Gray ? width : 0);
}

void Picture::carve_blocks(Carver& pieces, int mcu_columns) {
  for (Plane& p : plane) {
    if (!p.needed()) continue;
    const size_t blocks = static_cast<size_t>(std::min(mcu_columns * p.h, p.columns.size()) * p.v);
    p.coefficients = pieces.take<int16_t>(static_cast<size_t>(p.stride) * blocks);
    p.ends = pieces.take<uint8_t>(blocks);
    if (!p.ends) continue;
    std::memset(p.coefficients, 0, static_cast<size_t>(p.stride) * blocks * sizeof(int16_t));
    std::memset(p.ends, 0, blocks);
  }
}

void Picture::transform(int mcu_row) {
  for (const Plane& p : plane) {
    const int count = p.held_columns.size();
    if (!p.needed() || count == 0) continue;
    for (int row = mcu_row * p.v; row < (mcu_row + 1) * p.v; ++row) {
      if (!p.held_rows.has(row)) continue;
      const size_t index = p.block_index(row);
      uint8_t* out = p.row(p.size * row) + p.size * (p.held_columns.begin - p.columns.begin);
      p.inverse_dct(p.coefficients + static_cast<size_t>(p.stride) * index, p.ends + index, count, p.quantiser, out,
                    p.pitch);
      std::memset(p.ends + index, 0, static_cast<size_t>(count));  // MCUs lost to damage count as zero
    }
  }
}

void Picture::finish_row(int mcu_row, bool last) {
  for (const Plane& p : plane) {
    if (!p.needed() || (p.upsample != Upsample::Width && p.upsample != Upsample::Both)) continue;
    for (int row = mcu_row * p.v; row < (mcu_row + 1) * p.v; ++row)
      if (p.rows.has(row)) extend_edges(p, row);
  }
  const int complete = last ? to_.window.y1 : (mcu_row + 1) * size_ * info_.v_max - lag_;
  for (const int end = std::min(complete, to_.window.y1); next_y_ < end; ++next_y_) {
    const uint8_t* row[kMaxComponents] = {};
    for (int i = 0; i < planes(); ++i)
      if (plane[i].needed()) row[i] = full_row(plane[i], next_y_);
    write_pixels(row, destination(next_y_));
    if (to_.sink) pass_on(next_y_);
  }
}

uint8_t* Picture::destination(int y) const {
  const int row = y - to_.window.y0;
  return to_.dst + to_.pitch * (to_.sink ? row % to_.sink->rows : row);
}

// Pass on the last rows if row y completes them or is the window's last one.
void Picture::pass_on(int y) {
  const int row = y - to_.window.y0, first = row - row % to_.sink->rows;
  if (row + 1 - first == to_.sink->rows || y + 1 == to_.window.y1)
    to_.sink->take(to_.sink->to, first, row + 1, to_.dst, to_.pitch);
}

// Extend the rows for the triangle filter, which repeats the first and last sample of the image and not the padding of
// the last block.
void Picture::extend_edges(const Plane& p, int block_row) {
  const int end = p.width - p.size * p.columns.begin;
  for (int y = p.size * block_row; y < p.size * (block_row + 1); ++y) {
    uint8_t* row = p.row(y);
    if (p.columns.begin == 0) row[-1] = row[0];
    if (p.columns.end == p.blocks_wide()) row[end] = row[end - 1];
  }
}

// Return row y of the component at full size, from column window.x0 on.
const uint8_t* Picture::full_row(const Plane& p, int y) {
  const int count = p.window_samples, shift = p.window_begin;
  const auto near = [&](int row) { return p.row(row) + shift; };
  const auto far = [&] { return p.row(std::clamp(y / 2 + (y & 1 ? 1 : -1), 0, p.height - 1)) + shift; };
  switch (p.upsample) {
    case Upsample::None: return near(y);
    case Upsample::Width: rows_.double_width(near(y), count, p.full); break;
    case Upsample::Height: rows_.double_height(near(y / 2), far(), y & 1 ? 2 : 1, count, p.full); break;
    case Upsample::Both: rows_.double_both(near(y / 2), far(), count, sums_, p.full); break;
    case Upsample::Repeat:
      if (p.fx == 1) return near(y / p.fy);
      repeat_samples(near(y / p.fy), count, p.fx, p.full);
      break;
  }
  return p.full + p.window_skip;
}

void Picture::write_pixels(const uint8_t* const* row, uint8_t* dst) {
  if (info_.components == 4) return write_inks(row, dst);
  const int n = to_.window.x1 - to_.window.x0;
  const Format format = to_.format;
  const uint8_t *a = row[0], *b = row[1], *c = row[2];
  if (info_.model == Model::Gray) {
    if (format == Format::YCbCr || format == Format::Planes) b = c = neutral_;
    else b = c = a;
  }
  if (format == Format::Planes) {
    write_planes(a, b, c, dst);
  } else if (format == Format::GRAY) {
    if (info_.model == Model::RGB) rgb_to_gray(a, b, c, dst, n);
    else std::memcpy(dst, a, static_cast<size_t>(n));
  } else if (info_.model == Model::YCbCr && format != Format::YCbCr) {
    (format == Format::BGR ? rows_.ycc_to_bgr : rows_.ycc_to_rgb)(a, b, c, dst, n);
  } else if (info_.model == Model::RGB && format == Format::YCbCr) {
    rgb_to_ycc(a, b, c, dst, n);
  } else if (format == Format::BGR) {
    rows_.interleave(c, b, a, dst, n);
  } else {
    rows_.interleave(a, b, c, dst, n);
  }
}

void Picture::write_planes(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst) {
  const int n = to_.window.x1 - to_.window.x0;
  const ptrdiff_t plane = to_.pitch * (to_.window.y1 - to_.window.y0);
  const uint8_t* const from[3] = {a, b, c};
  if (info_.model == Model::RGB) rgb_to_ycc(a, b, c, pixels_, n);
  for (int i = 0; i < 3; ++i) {
    uint8_t* const to = dst + plane * i;
    if (info_.model != Model::RGB) std::memcpy(to, from[i], static_cast<size_t>(n));
    else
      for (int x = 0; x < n; ++x) to[x] = pixels_[3 * x + i];
  }
}

// The first three planes of YCCK are a YCbCr picture of 255 minus the amount of each ink.
void Picture::write_inks(const uint8_t* const* row, uint8_t* dst) {
  const int n = to_.window.x1 - to_.window.x0;
  const bool ycc = info_.model == Model::YCCK, bgr = to_.format == Format::BGR;
  uint8_t* const out = to_.format == Format::GRAY ? pixels_ : dst;
  if (ycc) (bgr ? rows_.ycc_to_bgr : rows_.ycc_to_rgb)(row[0], row[1], row[2], out, n);
  else rows_.interleave(row[bgr ? 2 : 0], row[1], row[bgr ? 0 : 2], out, n);
  inks_to_rgb(row[3], !ycc, out, n);
  if (out == pixels_) interleaved_rgb_to_gray(pixels_, dst, n);
}

Status Picture::give_up() {
  const Window& w = to_.window;
  const int planes = to_.format == Format::Planes ? 3 : 1, rows = planes * (w.y1 - w.y0);
  const size_t bytes = static_cast<size_t>(w.x1 - w.x0) * static_cast<size_t>(channels(info_, to_.format) / planes);
  for (int y = 0; y < rows; ++y) {
    std::memset(destination(w.y0 + y), 0, bytes);
    if (to_.sink) pass_on(w.y0 + y);
  }
  return Status::Corrupt;
}

}  // namespace stoker::jpeg
