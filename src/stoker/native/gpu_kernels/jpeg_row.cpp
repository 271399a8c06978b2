// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/jpeg_row.hpp"

#include <algorithm>

#include "jpeg/bits.hpp"
#include "jpeg/picture.hpp"

namespace stoker::jpeg::gpu {
namespace {

constexpr int kMaxSegments = 1 << 16;

int mcu_columns(const Info& info) { return ceil_div(info.width, 8 * info.h_max); }
int mcu_rows(const Info& info) { return ceil_div(info.height, 8 * info.v_max); }

// Return the number of segments into which restart markers split a scan.
int64_t segments_of(int64_t mcus, int64_t interval) { return interval ? (mcus + interval - 1) / interval : 1; }

bool possible_codes(const uint8_t* data, const Info& info) {
  Code code;
  for (int i = 0; i < info.scan.count; ++i) {
    bool small = true;
    const auto check = [&](uint32_t, int, int symbol) { small &= symbol <= 15; };
    if (!canonical(data + info.tables.dc[info.scan.dc[i]], 16, code, check) || !small) return false;
    if (!canonical(data + info.tables.ac[info.scan.ac[i]], 0, code, check)) return false;
  }
  return true;
}

bool has_tables(const Info& info) {
  for (int i = 0; i < info.scan.count; ++i)
    if (!info.tables.dc[info.scan.dc[i]] || !info.tables.ac[info.scan.ac[i]]) return false;
  return true;
}

Wanted wanted_of(Format format, Model model) {
  if (format == Format::ANY) return model == Model::Gray ? Wanted::GRAY : Wanted::RGB;
  return static_cast<Wanted>(format);
}
static_assert(static_cast<int>(Wanted::YCbCr) == static_cast<int>(Format::YCbCr));
static_assert(static_cast<int>(Colour::RGB) == static_cast<int>(Model::RGB));
static_assert(static_cast<int>(Spread::Repeat) == static_cast<int>(Upsample::Repeat));

Plane describe_plane(const jpeg::Plane& from) {
  Plane p = {};
  p.h = static_cast<uint8_t>(from.h);
  p.v = static_cast<uint8_t>(from.v);
  p.fx = static_cast<uint8_t>(from.fx);
  p.fy = static_cast<uint8_t>(from.fy);
  p.width = static_cast<uint16_t>(from.width);
  p.height = static_cast<uint16_t>(from.height);
  p.first_column = static_cast<uint16_t>(from.columns.begin);
  p.first_row = static_cast<uint16_t>(from.rows.begin);
  p.columns = static_cast<uint16_t>(from.columns.size());
  p.rows = static_cast<uint16_t>(from.rows.size());
  p.size = static_cast<uint8_t>(from.size);
  p.spread = static_cast<Spread>(from.upsample);
  return p;
}

// Check the scan's components of a file with one scan. The parser has only checked the components of the scan:
// quantisers of others may not exist, and their blocks may not fit an MCU.
void describe_scan(const Info& info, Row& row) {
  for (int i = 0; i < info.components; ++i) {
    Plane& p = row.plane[i];
    const int quantiser = info.component[i].quantiser;
    p.quantiser = info.tables.quantiser[quantiser];
    p.wide = info.tables.wide[quantiser];
    p.first_block = row.blocks;
    for (int b = 0; b < p.h * p.v; ++b) row.component[row.blocks++] = static_cast<uint8_t>(i);
  }
}

// Assign table pairs: components with the same two tables share a pair. Find after how many blocks the MCU's pairs
// repeat.
void describe_tables(const Info& info, Row& row) {
  const Scan& scan = info.scan;
  uint8_t pair[kMaxPlanes] = {};
  for (uint8_t i = 0; i < scan.count; ++i) {
    while (scan.dc[pair[i]] != scan.dc[i] || scan.ac[pair[i]] != scan.ac[i]) ++pair[i];
    row.dc[pair[i]] = info.tables.dc[scan.dc[i]];
    row.ac[pair[i]] = info.tables.ac[scan.ac[i]];
  }
  const auto pair_of = [&](int block) { return pair[row.component[block]]; };
  for (int b = 0; b < row.blocks; ++b) row.pairs |= static_cast<uint32_t>(pair_of(b)) << 2 * b;
  const auto repeats_after = [&](int period) {
    for (int b = period; b < row.blocks; ++b)
      if (pair_of(b) != pair_of(b - period)) return false;
    return row.blocks % period == 0;
  };
  for (row.period = 1; !repeats_after(row.period);) ++row.period;
}

}  // namespace

planar::Form form_of(const Row& row) {
  const Plane* const p = row.plane;
  if (row.wanted != Wanted::RGB && row.wanted != Wanted::BGR) return planar::Form::Other;
  if (p[0].spread != Spread::None || row.colour == Colour::RGB) return planar::Form::Other;
  if (row.colour == Colour::Gray) return planar::Form::Gray;
  if (p[1].spread != p[2].spread || p[1].spread == Spread::Repeat) return planar::Form::Other;
  switch (p[1].spread) {
    case Spread::Width: return planar::Form::Width;
    case Spread::Height: return planar::Form::Height;
    case Spread::Both: return planar::Form::Both;
    default: return planar::Form::None;
  }
}

Row describe(const Info& info, const Window& window, Format format, int scale_log2) {
  Row row = {};
  const Picture picture(info, {window, format, scale_log2, nullptr, 0, nullptr});
  for (int i = 0; i < info.components; ++i) row.plane[i] = describe_plane(picture.plane[i]);
  if (!has_several_scans(info)) {
    describe_scan(info, row);
    describe_tables(info, row);
  }
  row.components = static_cast<uint8_t>(info.components);
  row.scan = info.scan.data;
  row.colour = static_cast<Colour>(info.model);
  row.wanted = wanted_of(format, info.model);
  row.x0 = window.x0;
  row.y0 = window.y0;
  row.width = window.x1 - window.x0;
  row.height = window.y1 - window.y0;
  row.mcu_columns = static_cast<uint32_t>(picture.mcu_columns());
  row.mcu_rows = static_cast<uint32_t>(picture.mcu_rows());
  row.needed_rows = static_cast<uint32_t>(picture.needed_mcu_rows());
  row.first_row = first_needed_row(info, picture);
  row.restart_interval = info.restart_interval;
  return row;
}

bool may_have(const Row& row, uint32_t mcu_rows) {
  const uint64_t blocks = uint64_t{mcu_rows} * row.mcu_columns * row.blocks;
  return blocks <= 4 * uint64_t{row.file_bytes - row.scan};
}

uint32_t segments_in(const Row& row) {
  return static_cast<uint32_t>(segments_of(int64_t{row.mcu_columns} * row.mcu_rows, row.restart_interval));
}

uint32_t shares_of(const Row& row, uint32_t threads) {
  uint32_t first = row.mcu_columns, end = 0;
  for (const Plane& p : row.plane) {
    if (p.columns == 0) continue;
    first = std::min<uint32_t>(first, p.first_column / p.h);
    end = std::max(end, (uint32_t{p.first_column} + p.columns + p.h - 1) / p.h);
  }
  const uint64_t rows = row.needed_rows - row.first_row, mcus = uint64_t{row.mcu_columns} * row.mcu_rows;
  const uint64_t all = uint64_t{kIndexSubsequences} * row.pieces;
  // In each row of MCUs one more piece may begin before the window's columns.
  const uint64_t needed = std::min(all, all * rows * (std::max(end, first) - first) / mcus + rows);
  return static_cast<uint32_t>(std::max<uint64_t>(1, (needed + threads - 1) / threads));
}

uint32_t first_needed_row(const Info& info, const Picture& picture) {
  int first = picture.needed_mcu_rows();
  for (int i = 0; i < info.components; ++i)
    if (const jpeg::Plane& p = picture.plane[i]; p.needed()) first = std::min(first, p.rows.begin / p.v);
  return static_cast<uint32_t>(first);
}

Part part_of(const KnownFile& file, const Info& info, const Window& window, Format format, int scale_log2) {
  const Picture picture(info, {window, format, scale_log2, nullptr, 0, nullptr});
  uint32_t blocks = 0;
  for (int i = 0; i < info.components; ++i) blocks += static_cast<uint32_t>(info.component[i].h * info.component[i].v);
  const uint32_t per_row = static_cast<uint32_t>(picture.mcu_columns()) * blocks;
  const uint32_t first = first_needed_row(info, picture) * per_row;
  const uint32_t end = static_cast<uint32_t>(picture.needed_mcu_rows()) * per_row;
  const Outline& outline = file.outline;
  Part part = {0, 1, 0, 0};
  while (part.begin + 1 < outline.chunks && outline.chunk[part.begin + 1].blocks < first) ++part.begin;
  for (part.end = part.begin + 1; part.end < outline.chunks && outline.chunk[part.end].blocks < end;) ++part.end;
  // The last symbol may extend beyond the chunk in which it begins.
  if (part.end < outline.chunks) ++part.end;
  const uint64_t data = file.header.size();
  part.offset = data + outline.chunk[part.begin].offset;
  part.bytes = (part.end < outline.chunks ? data + outline.chunk[part.end].offset : file.size) - part.offset;
  return part;
}

const char* refusal(const uint8_t* data, const Info& info) {
  if (info.support != Support::Native) return info.reason;
  if (info.components > kMaxPlanes) return "four components";
  if (has_several_scans(info)) return nullptr;
  if (!has_tables(info)) return "no Huffman tables";
  if (!possible_codes(data, info)) return "impossible Huffman tables";
  const int64_t mcus = int64_t{mcu_columns(info)} * mcu_rows(info);
  if (segments_of(mcus, info.restart_interval) > kMaxSegments) return "more than 65536 restart segments";
  return nullptr;
}

}  // namespace stoker::jpeg::gpu
