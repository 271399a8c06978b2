// SPDX-License-Identifier: Apache-2.0
// Window decoding: one MCU row at a time through entropy decoding, inverse DCT into rings of two MCU rows, upsampling
// and colour, so that the working set stays in the caches. Files with several scans hold the coefficients instead.
#include <algorithm>
#include <cstring>

#include "jpeg.hpp"
#include "jpeg_huffman.hpp"
#include "jpeg_idct.hpp"
#include "jpeg_parse.hpp"
#include "jpeg_rows.hpp"
#include "jpeg_segments.hpp"

namespace stoker::jpeg {
namespace {

constexpr int kLeftMargin = 32;  // of a ring row: room for the sample left of the image, and aligned stores
constexpr size_t kPairBytes = 4096;  // from this much data on, AC tables are built with pairs
// MCUs between entropy decoding and inverse DCT. Measured: going to and fro more often costs more than coefficients
// leaving the first-level cache; wide images still keep to the second.
constexpr int kChunk = 128;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// How a component is brought to full size: libjpeg's choice by ratio.
enum class Upsample : uint8_t { None, Width, Height, Both, Repeat };

Upsample choose_upsample(int fx, int fy, int width) {
  if (fx == 1 && fy == 1) return Upsample::None;
  if (fx == 1 && fy == 2) return Upsample::Height;
  if (fx == 2 && fy == 1 && width > 2) return Upsample::Width;
  if (fx == 2 && fy == 2 && width > 2) return Upsample::Both;
  return Upsample::Repeat;
}

struct Range {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  bool has(int i) const { return i >= begin && i < end; }
  Range clipped(Range to) const {
    const int b = std::max(begin, to.begin);
    return {b, std::max(b, std::min(end, to.end))};
  }
};

// Samples that output [begin, end) needs at ratio `factor`, with one neighbour on each side for the triangle filter.
Range source_range(int begin, int end, int factor, bool filtered, int size) {
  const int margin = filtered ? 1 : 0;
  return {std::max(begin / factor - margin, 0), std::min((end - 1) / factor + 1 + margin, size)};
}

// One component within the window.
struct Plane {
  int h = 1, v = 1, fx = 1, fy = 1;
  int width = 0, height = 0;  // samples, without padding
  Upsample upsample = Upsample::None;
  bool decoded = false;    // its scan was met
  Range columns, rows;     // blocks needed; none when the format leaves the component out
  Range held_columns, held_rows;  // blocks that `coefficients` and `ends` hold now
  int16_t* coefficients = nullptr;
  uint8_t* ends = nullptr;
  uint8_t* ring = nullptr;
  ptrdiff_t pitch = 0;
  uint8_t* full = nullptr;  // one upsampled row
  alignas(32) int16_t quantiser[64] = {};

  bool needed() const { return columns.size() > 0; }
  int blocks_wide() const { return ceil_div(width, 8); }
  int blocks_high() const { return ceil_div(height, 8); }
  // Of a held row's first block.
  size_t block_index(int row) const {
    return static_cast<size_t>(row - held_rows.begin) * static_cast<size_t>(held_columns.size());
  }
  // Sample column 8 * columns.begin of sample row y.
  uint8_t* row(int y) const { return ring + pitch * (y % (16 * v)) + kLeftMargin; }
};

// Carves pieces out of one allocation: a first pass without memory measures, the second hands out.
class Carver {
 public:
  explicit Carver(uint8_t* base) : base_(base) {}
  template <typename T>
  T* take(size_t n) {
    const size_t at = used_;
    used_ += (n * sizeof(T) + 63) / 64 * 64;
    return base_ ? reinterpret_cast<T*>(base_ + at) : nullptr;
  }
  size_t used() const { return used_; }

 private:
  uint8_t* base_;
  size_t used_ = 0;
};

class Decoder {
 public:
  Decoder(const uint8_t* data, size_t size, const Info& info, Window window, Format format, uint8_t* dst,
          ptrdiff_t pitch)
      : data_(data), size_(size), info_(info), window_(window), format_(resolve(info, format)), dst_(dst),
        pitch_(pitch), single_(info.scan.count == info.components), inverse_dct_(inverse_dct()), rows_(row_kernels()) {
    plan_planes();
  }

  Status run(Scratch& scratch) {
    Carver measure(nullptr);
    carve(measure);
    Carver pieces(scratch.get(measure.used()));
    carve(pieces);
    clear_coefficients();
    Segments segments(data_, size_, entropy_);
    const Status status = single_ ? run_single(segments) : run_multiple(segments);
    if (status == Status::Ok && truncated_) return Status::Truncated;
    if (status == Status::Ok && segments.damaged()) return Status::Corrupt;
    return status;
  }

 private:
  static Format resolve(const Info& info, Format format) {
    if (format != Format::ANY) return format;
    return info.model == Model::Gray ? Format::GRAY : Format::RGB;
  }
  int planes() const { return info_.components; }
  int mcu_rows() const { return ceil_div(info_.height, 8 * info_.v_max); }
  int mcu_columns() const { return ceil_div(info_.width, 8 * info_.h_max); }

  void plan_planes();
  void carve(Carver& pieces);
  void clear_coefficients();
  bool prepare_scan(const Info& state);
  bool load_quantiser(const Info& state, int plane);
  void hold(const Scan& scan, Range mcu_columns, int row);
  void aim_mcu(const Scan& scan, int row);
  int last_row(const Scan& scan) const;
  Range needed_columns(const Scan& scan) const;
  int scan_columns(const Scan& scan) const;
  void decode_chunks(Segments& segments, int row);
  Status run_single(Segments& segments);
  Status run_multiple(Segments& segments);
  void transform(int mcu_row);
  void extend_row(int mcu_row);
  void extend_edges(const Plane& plane, int block_row);
  void emit_rows(int end);
  const uint8_t* full_row(const Plane& plane, int y);
  void write_pixels(const uint8_t* const* row, uint8_t* dst);
  Status give_up();

  const uint8_t* data_;
  size_t size_;
  Info info_;
  Window window_;
  Format format_;
  uint8_t* dst_;
  ptrdiff_t pitch_;
  bool single_;
  InverseDct inverse_dct_;
  const RowKernels& rows_;

  Plane plane_[kMaxComponents];
  DcTable* dc_ = nullptr;  // per component of the current scan
  AcTable* ac_ = nullptr;
  uint8_t* entropy_ = nullptr;
  int16_t* sums_ = nullptr;
  uint8_t* neutral_ = nullptr;
  Mcu mcu_;
  int lag_ = 0;  // rows above an MCU row's end that need the next one
  int next_y_ = 0;
  bool truncated_ = false;
};

void Decoder::plan_planes() {
  const bool luma_only = format_ == Format::GRAY && info_.model != Model::RGB;
  for (int i = 0; i < planes(); ++i) {
    const Component& c = info_.component[i];
    Plane& p = plane_[i];
    p.h = c.h;
    p.v = c.v;
    p.fx = info_.h_max / c.h;
    p.fy = info_.v_max / c.v;
    p.width = ceil_div(info_.width * c.h, info_.h_max);
    p.height = ceil_div(info_.height * c.v, info_.v_max);
    p.upsample = choose_upsample(p.fx, p.fy, p.width);
    if (luma_only && i > 0) continue;
    const bool wide = p.upsample == Upsample::Width || p.upsample == Upsample::Both;
    const bool high = p.upsample == Upsample::Height || p.upsample == Upsample::Both;
    const Range x = source_range(window_.x0, window_.x1, p.fx, wide, p.width);
    const Range y = source_range(window_.y0, window_.y1, p.fy, high, p.height);
    p.columns = {x.begin / 8, ceil_div(x.end, 8)};
    p.rows = {y.begin / 8, ceil_div(y.end, 8)};
    if (high) lag_ = 1;
  }
  next_y_ = window_.y0;
}

void Decoder::carve(Carver& pieces) {
  const size_t width = static_cast<size_t>(window_.x1 - window_.x0);
  const size_t count = info_.scan.count == planes() ? info_.scan.count : kMaxComponents;
  dc_ = pieces.take<DcTable>(count);
  ac_ = pieces.take<AcTable>(count);
  entropy_ = pieces.take<uint8_t>(size_ - info_.scan.data + kBitPadding);
  sums_ = pieces.take<int16_t>(width / 2 + 4 + kRowSlack);
  neutral_ = pieces.take<uint8_t>(info_.model == Model::Gray ? width + kRowSlack : 0);
  for (int i = 0; i < planes(); ++i) {
    Plane& p = plane_[i];
    if (!p.needed()) continue;
    p.held_rows = single_ ? Range{0, p.v} : p.rows;
    p.held_columns = single_ ? Range{0, kChunk * p.h} : p.columns;
    p.coefficients = pieces.take<int16_t>(64 * p.block_index(p.held_rows.end));
    p.ends = pieces.take<uint8_t>(p.block_index(p.held_rows.end));
    p.pitch = (kLeftMargin + 8 * p.columns.size() + kRowSlack + 31) / 32 * 32;
    p.ring = pieces.take<uint8_t>(static_cast<size_t>(p.pitch) * 16 * static_cast<size_t>(p.v));
    p.full = pieces.take<uint8_t>(p.upsample == Upsample::None ? 0 : width + 8 + kRowSlack);
  }
}

void Decoder::clear_coefficients() {
  for (Plane& p : plane_) {
    if (!p.needed()) continue;
    const size_t blocks = p.block_index(p.held_rows.end);
    std::memset(p.coefficients, 0, blocks * 128);
    std::memset(p.ends, 0, blocks);
  }
  if (info_.model == Model::Gray) std::memset(neutral_, 128, static_cast<size_t>(window_.x1 - window_.x0));
}

bool Decoder::load_quantiser(const Info& state, int plane) {
  const int index = state.component[plane].quantiser;
  const uint8_t* p = data_ + state.tables.quantiser[index];
  const bool wide = state.tables.wide[index];
  for (int i = 0; i < 64; ++i) {
    const int value = wide ? p[2 * i] << 8 | p[2 * i + 1] : p[i];
    plane_[plane].quantiser[natural_position(i)] = static_cast<int16_t>(value);
  }
  return state.tables.quantiser[index] != 0;
}

// Tables of the scan in `state`. False: a table is missing or impossible.
bool Decoder::prepare_scan(const Info& state) {
  const Scan& scan = state.scan;
  const bool pairs = size_ - scan.data >= kPairBytes;
  for (int i = 0; i < scan.count; ++i) {
    const uint32_t dc_offset = state.tables.dc[scan.dc[i]], ac_offset = state.tables.ac[scan.ac[i]];
    const uint8_t* dc = dc_offset ? data_ + dc_offset : standard_dc(scan.dc[i]);
    const uint8_t* ac = ac_offset ? data_ + ac_offset : standard_ac(scan.ac[i]);
    const auto* same_dc = std::find(scan.dc, scan.dc + i, scan.dc[i]);
    const auto* same_ac = std::find(scan.ac, scan.ac + i, scan.ac[i]);
    if (same_dc == scan.dc + i && (!dc || !build_dc(dc, dc_[i]))) return false;
    if (same_ac == scan.ac + i && (!ac || !build_ac(ac, pairs, ac_[i]))) return false;
    if (!load_quantiser(state, scan.component[i])) return false;
  }
  mcu_ = Mcu{};
  for (int i = 0; i < scan.count; ++i) {
    const Plane& p = plane_[scan.component[i]];
    const int h = scan.count > 1 ? p.h : 1, v = scan.count > 1 ? p.v : 1;
    for (int b = 0; b < h * v; ++b) {
      McuBlock& block = mcu_.block[mcu_.count++];
      block.dc = dc_ + (std::find(scan.dc, scan.dc + i, scan.dc[i]) - scan.dc);
      block.ac = ac_ + (std::find(scan.ac, scan.ac + i, scan.ac[i]) - scan.ac);
      block.component = scan.component[i];
      block.step = h;
      block.offset = b % h;
    }
  }
  return true;
}

// Makes room for the needed blocks of some MCUs of a row. What was held must have been transformed.
void Decoder::hold(const Scan& scan, Range mcu_columns, int row) {
  for (int i = 0; i < scan.count; ++i) {
    Plane& p = plane_[scan.component[i]];
    p.held_rows = p.rows.clipped({row * p.v, (row + 1) * p.v});
    p.held_columns = p.columns.clipped({mcu_columns.begin * p.h, mcu_columns.end * p.h});
  }
}

// Points the MCU's blocks at the coefficients of MCU row `row`.
void Decoder::aim_mcu(const Scan& scan, int row) {
  int at = 0;
  for (int i = 0; i < scan.count; ++i) {
    const Plane& p = plane_[scan.component[i]];
    const int h = scan.count > 1 ? p.h : 1, v = scan.count > 1 ? p.v : 1;
    for (int b = 0; b < h * v; ++b) {
      McuBlock& block = mcu_.block[at++];
      const int block_row = row * v + b / h;
      block.first = p.held_columns.begin;
      block.stored = p.needed() && p.held_rows.has(block_row) ? p.held_columns.size() : 0;
      if (!block.stored) continue;
      const size_t index = p.block_index(block_row);
      block.coefficients = p.coefficients + 64 * index;
      block.ends = p.ends + index;
    }
  }
}

int Decoder::scan_columns(const Scan& scan) const {
  return scan.count > 1 ? mcu_columns() : plane_[scan.component[0]].blocks_wide();
}

// MCU rows of the scan up to the last one that matters.
int Decoder::last_row(const Scan& scan) const {
  int end = 0;
  for (int i = 0; i < scan.count; ++i) {
    const Plane& p = plane_[scan.component[i]];
    if (p.needed()) end = std::max(end, scan.count > 1 ? ceil_div(p.rows.end, p.v) : p.rows.end);
  }
  return end;
}

// MCU columns of the single scan that hold needed blocks.
Range Decoder::needed_columns(const Scan& scan) const {
  Range all{scan_columns(scan), 0};
  for (int i = 0; i < scan.count; ++i) {
    const Plane& p = plane_[scan.component[i]];
    if (!p.needed()) continue;
    all = {std::min(all.begin, p.columns.begin / p.h), std::max(all.end, ceil_div(p.columns.end, p.h))};
  }
  return all;
}

void Decoder::decode_chunks(Segments& segments, int row) {
  const Scan& scan = info_.scan;
  const Range needed = needed_columns(scan);
  hold(scan, {0, 0}, row);
  aim_mcu(scan, row);
  segments.decode(mcu_, 0, needed.begin);
  for (int begin = needed.begin; begin < needed.end; begin += kChunk) {
    const Range chunk{begin, std::min(begin + kChunk, needed.end)};
    hold(scan, chunk, row);
    aim_mcu(scan, row);
    segments.decode(mcu_, chunk.begin, chunk.end);
    transform(row);
  }
  hold(scan, {0, 0}, row);
  aim_mcu(scan, row);
  if (row + 1 < last_row(scan)) segments.decode(mcu_, needed.end, scan_columns(scan));
}

Status Decoder::run_single(Segments& segments) {
  if (!prepare_scan(info_)) return give_up();
  segments.start_scan(info_.scan.data, info_.restart_interval);
  const int rows = last_row(info_.scan);
  for (int row = 0; row < rows; ++row) {
    decode_chunks(segments, row);
    extend_row(row);
    emit_rows(row + 1 == rows ? window_.y1 : (row + 1) * 8 * info_.v_max - lag_);
  }
  truncated_ = segments.truncated();
  return Status::Ok;
}

Status Decoder::run_multiple(Segments& segments) {
  Info state = info_;
  Stop stop = Stop::AtScan;
  bool frame_seen = true;
  size_t pos = state.scan.data;
  while (stop == Stop::AtScan) {
    for (int i = 0; i < state.scan.count; ++i) {
      Plane& p = plane_[state.scan.component[i]];
      if (p.decoded) return Status::Unsupported;  // a second scan of a component refines or overwrites the first
      p.decoded = true;
    }
    if (const int rows = last_row(state.scan)) {
      if (!prepare_scan(state)) return give_up();
      segments.start_scan(state.scan.data, state.restart_interval);
      for (int row = 0; row < rows; ++row) {
        aim_mcu(state.scan, row);
        segments.decode(mcu_, 0, scan_columns(state.scan));
      }
      pos = segments.position();
    }
    stop = walk_markers(data_, size_, pos, frame_seen, state);
  }
  if (stop == Stop::Refused) return give_up();
  truncated_ = stop == Stop::OutOfData;
  const bool complete = std::all_of(plane_, plane_ + planes(), [](const Plane& p) { return p.decoded; });
  for (int row = 0; row < mcu_rows() && next_y_ < window_.y1; ++row) {
    transform(row);
    extend_row(row);
    emit_rows(row + 1 == mcu_rows() ? window_.y1 : (row + 1) * 8 * info_.v_max - lag_);
  }
  return complete || truncated_ ? Status::Ok : Status::Corrupt;
}

// Inverse DCT of the held blocks of an MCU row.
void Decoder::transform(int mcu_row) {
  for (int i = 0; i < planes(); ++i) {
    const Plane& p = plane_[i];
    const int count = p.held_columns.size();
    if (!p.needed() || count == 0) continue;
    for (int row = mcu_row * p.v; row < (mcu_row + 1) * p.v; ++row) {
      if (!p.held_rows.has(row)) continue;
      const size_t index = p.block_index(row);
      uint8_t* out = p.row(8 * row) + 8 * (p.held_columns.begin - p.columns.begin);
      inverse_dct_(p.coefficients + 64 * index, p.ends + index, count, p.quantiser, out, p.pitch);
      std::memset(p.ends + index, 0, static_cast<size_t>(count));  // MCUs lost to damage count as zero
    }
  }
}

void Decoder::extend_row(int mcu_row) {
  for (int i = 0; i < planes(); ++i) {
    const Plane& p = plane_[i];
    if (p.upsample != Upsample::Width && p.upsample != Upsample::Both) continue;
    for (int row = mcu_row * p.v; row < (mcu_row + 1) * p.v; ++row)
      if (p.needed() && p.rows.has(row)) extend_edges(p, row);
  }
}

// The triangle filter repeats the first and last sample of the image, not the padding of the last block.
void Decoder::extend_edges(const Plane& plane, int block_row) {
  const int end = plane.width - 8 * plane.columns.begin;
  for (int y = 8 * block_row; y < 8 * block_row + 8; ++y) {
    uint8_t* row = plane.row(y);
    if (plane.columns.begin == 0) row[-1] = row[0];
    if (plane.columns.end == plane.blocks_wide()) row[end] = row[end - 1];
  }
}

void Decoder::emit_rows(int end) {
  end = std::min(end, window_.y1);
  for (; next_y_ < end; ++next_y_) {
    const uint8_t* row[kMaxComponents] = {};
    for (int i = 0; i < planes(); ++i)
      if (plane_[i].needed()) row[i] = full_row(plane_[i], next_y_);
    write_pixels(row, dst_ + pitch_ * (next_y_ - window_.y0));
  }
}

// Row y of the component at full size, from column window_.x0 on.
const uint8_t* Decoder::full_row(const Plane& p, int y) {
  const int begin = window_.x0 / p.fx, count = (window_.x1 - 1) / p.fx + 1 - begin;
  const int shift = begin - 8 * p.columns.begin;
  const int far_row = std::clamp(y / 2 + (y & 1 ? 1 : -1), 0, p.height - 1);
  const uint8_t* near = p.row(y / p.fy) + shift;
  switch (p.upsample) {
    case Upsample::None: return near;
    case Upsample::Width: rows_.double_width(near, count, p.full); break;
    case Upsample::Height: rows_.double_height(near, p.row(far_row) + shift, y & 1 ? 2 : 1, count, p.full); break;
    case Upsample::Both: rows_.double_both(near, p.row(far_row) + shift, count, sums_, p.full); break;
    case Upsample::Repeat:
      if (p.fx == 1) return near;
      repeat_samples(near, count, p.fx, p.full);
      break;
  }
  return p.full + window_.x0 % p.fx;
}

void Decoder::write_pixels(const uint8_t* const* row, uint8_t* dst) {
  const int n = window_.x1 - window_.x0;
  const uint8_t *a = row[0], *b = row[1], *c = row[2];
  if (info_.model == Model::Gray) {
    if (format_ == Format::YCbCr) b = c = neutral_;
    else b = c = a;
  }
  if (format_ == Format::GRAY) {
    if (info_.model == Model::RGB) rgb_to_gray(a, b, c, dst, n);
    else std::memcpy(dst, a, static_cast<size_t>(n));
  } else if (info_.model == Model::YCbCr && format_ != Format::YCbCr) {
    (format_ == Format::BGR ? rows_.ycc_to_bgr : rows_.ycc_to_rgb)(a, b, c, dst, n);
  } else if (info_.model == Model::RGB && format_ == Format::YCbCr) {
    rgb_to_ycc(a, b, c, dst, n);
  } else if (format_ == Format::BGR) {
    rows_.interleave(c, b, a, dst, n);
  } else {
    rows_.interleave(a, b, c, dst, n);
  }
}

// Without tables nothing can be decoded; the caller still gets defined pixels.
Status Decoder::give_up() {
  const size_t bytes = static_cast<size_t>(window_.x1 - window_.x0) * static_cast<size_t>(channels(info_, format_));
  for (int y = window_.y0; y < window_.y1; ++y) std::memset(dst_ + pitch_ * (y - window_.y0), 0, bytes);
  return Status::Corrupt;
}

}  // namespace

Status decode(const uint8_t* data, size_t size, const Info& info, Window w, Format format, uint8_t* dst,
              ptrdiff_t pitch, Scratch& scratch) {
  const bool inside = 0 <= w.x0 && w.x0 < w.x1 && w.x1 <= info.width && 0 <= w.y0 && w.y0 < w.y1 && w.y1 <= info.height;
  if (info.support != Support::Native || !inside || info.scan.data > size) return Status::Unsupported;
  return Decoder(data, size, info, w, format, dst, pitch).run(scratch);
}

}  // namespace stoker::jpeg
