// SPDX-License-Identifier: Apache-2.0
// Decoding of files with one scan: a chunk of MCUs at a time through entropy decoding and inverse DCT, one row of them
// through upsampling and colour conversion, so that the working set stays in the caches.
#include <algorithm>

#include "jpeg/huffman.hpp"
#include "jpeg/jpeg.hpp"
#include "jpeg/multiple.hpp"
#include "jpeg/picture.hpp"
#include "jpeg/scan.hpp"
#include "jpeg/segments.hpp"

namespace stoker::jpeg {
namespace {

// Number of MCUs between entropy decoding and inverse DCT. Measured: switching more often costs more than letting
// coefficients leave the L1 cache; wide images still fit into the L2 cache.
constexpr int kChunk = 128;

class SingleScan {
 public:
  SingleScan(const uint8_t* data, size_t size, const Info& info, const Target& target)
      : data_(data),
        size_(size),
        info_(info),
        head_(info),
        picture_(info, target),
        laps_(target.ticks),
        damage_(target.damage),
        decode_(mcu_decoder()) {}

  Status run(Scratch& scratch) {
    Carver measure;
    carve(measure);
    Carver pieces(scratch.get(measure.used()));
    carve(pieces);
    if (!prepare()) return picture_.give_up();
    Segments segments(data_, size_, entropy_, damage_);
    segments.start_scan(head_.scan.data, head_.restart_interval);
    laps_.lap(&Ticks::tables);
    const int rows = picture_.needed_mcu_rows();
    for (int row = 0; row < rows; ++row) {
      decode_chunks(segments, row, row + 1 == rows);
      picture_.finish_row(row, row + 1 == rows);
      laps_.lap(&Ticks::rows);
    }
    segments.finish();
    if (segments.truncated()) return Status::Truncated;
    return segments.damaged() ? Status::Corrupt : Status::Ok;
  }

 private:
  void carve(Carver& pieces) {
    dc_ = pieces.take<DcTable>(head_.scan.count);
    ac_ = pieces.take<AcTable>(head_.scan.count);
    entropy_ = pieces.take<uint8_t>(size_ - head_.scan.data + kBitPadding);
    picture_.carve(pieces);
    picture_.carve_blocks(pieces, kChunk);
  }

  bool prepare() {
    for (int i = 0; i < picture_.planes(); ++i)
      if (!load_quantiser(data_, head_.tables, info_.component[i], picture_.plane[i])) return false;
    if (!build_tables(data_, size_, head_, dc_, ac_, damage_)) return false;
    mcu_ = make_mcu(head_, picture_.plane, dc_, ac_);
    return true;
  }

  // A single component is never interleaved, and its sampling factors count as 1.
  int columns() const { return picture_.mcu_columns(); }

  // Return the MCU columns with needed blocks.
  Range needed_columns() const {
    Range all{columns(), 0};
    for (const Plane& p : picture_.plane) {
      if (!p.needed()) continue;
      all = {std::min(all.begin, p.columns.begin / p.h), std::max(all.end, ceil_div(p.columns.end, p.h))};
    }
    return all;
  }

  // Make the needed blocks of some MCUs of a row available. The blocks held before must have been transformed.
  void hold(Range mcu_columns, int row) {
    for (Plane& p : picture_.plane) {
      p.held_rows = p.rows.clipped({row * p.v, (row + 1) * p.v});
      p.held_columns = p.columns.clipped({mcu_columns.begin * p.h, mcu_columns.end * p.h});
    }
    aim_mcu(head_, picture_.plane, row, mcu_);
  }

  void decode_chunks(Segments& segments, int row, bool last) {
    SequentialCoder coder{decode_, mcu_};
    const Range needed = needed_columns();
    hold({0, 0}, row);
    segments.decode(coder, 0, needed.begin);
    for (int begin = needed.begin; begin < needed.end; begin += kChunk) {
      const Range chunk{begin, std::min(begin + kChunk, needed.end)};
      hold(chunk, row);
      segments.decode(coder, chunk.begin, chunk.end);
      laps_.lap(&Ticks::entropy);
      picture_.transform(row);
      laps_.lap(&Ticks::transform);
    }
    if (last) return;
    hold({0, 0}, row);
    segments.decode(coder, needed.end, columns());
    laps_.lap(&Ticks::entropy);
  }

  const uint8_t* data_;
  size_t size_;
  const Info& info_;
  ScanHead head_;
  Picture picture_;
  Laps laps_;
  Damage* damage_;
  DecodeMcus decode_;
  DcTable* dc_ = nullptr;
  AcTable* ac_ = nullptr;
  uint8_t* entropy_ = nullptr;
  Mcu mcu_;
};

}  // namespace

static Status decode_to(const uint8_t* data, size_t size, const Info& info, const Target& target, Scratch& scratch) {
  const Window& w = target.window;
  const Format format = target.format;
  const int scale_log2 = target.scale_log2;
  if (info.support != Support::Native || info.scan.data > size || scale_log2 < 0 || scale_log2 > 3)
    return Status::Unsupported;
  const Extent whole = scaled_extent(info, scale_log2);
  if (w.x0 < 0 || w.x0 >= w.x1 || w.x1 > whole.width) return Status::Unsupported;
  if (w.y0 < 0 || w.y0 >= w.y1 || w.y1 > whole.height) return Status::Unsupported;
  const bool ycc = format == Format::YCbCr || format == Format::Planes;
  if (info.components == 4 && ycc) return Status::Unsupported;  // Pillow has a conversion of its own for these
  if (has_several_scans(info)) return decode_multiple(data, size, info, target, scratch);
  return SingleScan(data, size, info, target).run(scratch);
}

Status decode(const uint8_t* data, size_t size, const Info& info, Window window, Format format, uint8_t* dst,
              ptrdiff_t pitch, Scratch& scratch, int scale_log2, Ticks* ticks, Damage* damage) {
  return decode_to(data, size, info, {window, format, scale_log2, dst, pitch, ticks, damage}, scratch);
}

Status decode_rows(const uint8_t* data, size_t size, const Info& info, Window window, Format format,
                   const RowSink& sink, Scratch& scratch) {
  if (format == Format::Planes || sink.rows < 1) return Status::Unsupported;
  return decode_to(data, size, info, {window, format, 0, nullptr, 0, nullptr, nullptr, &sink}, scratch);
}

}  // namespace stoker::jpeg
