// SPDX-License-Identifier: Apache-2.0
// All scans advance together, one MCU row after the other, each with its own bit buffer and tables. Only the
// coefficients of one MCU row are held at a time, so they stay in the caches, and rows below the window are never
// decoded. A first walk over the markers finds where scans begin and end.
#include "jpeg/multiple.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "jpeg/huffman.hpp"
#include "jpeg/parse.hpp"
#include "jpeg/passes.hpp"
#include "jpeg/progressive.hpp"
#include "jpeg/scan.hpp"
#include "jpeg/segments.hpp"

namespace stoker::jpeg {
namespace {

// Files with more scans are left to libjpeg, so that memory for tables and work per block stay bounded. No encoder
// comes near this number.
constexpr int kMaxScans = 200;

class MultipleScans {
 public:
  MultipleScans(const uint8_t* data, size_t size, const Info& info, const Target& target)
      : data_(data),
        size_(size),
        info_(info),
        picture_(info, target),
        coders_(progressive_coders()),
        decode_(mcu_decoder()),
        damage_(target.damage) {}

  Status run(Scratch& scratch) {
    const Status begun = begin(scratch);
    if (begun == Status::Corrupt || begun == Status::Truncated) picture_.give_up();
    if (begun != Status::Ok) return begun;
    const int rows = picture_.needed_mcu_rows();
    for (int row = 0; row < rows; ++row) {
      hold(row);
      decode_held(row);
      if (info_.progressive) set_ends(row);
      if (smooths_) smooth(row);
      picture_.transform(row);
      picture_.finish_row(row, row + 1 == rows);
    }
    return end();
  }

  Status keep(Coefficients& out, Scratch& scratch) {
    const Status begun = begin(scratch);
    if (begun != Status::Ok) return begun;
    std::copy_n(quantiser_, kMaxComponents, out.quantiser);
    std::copy_n(wide_, kMaxComponents, out.wide);
    for (int row = 0; row < picture_.needed_mcu_rows(); ++row) {
      hold(row);
      for (int i = 0; i < picture_.planes(); ++i) keep_here(picture_.plane[i], out.plane[i]);
      decode_held(row);
    }
    return end();
  }

 private:
  int columns(const Scan& scan) const {
    return scan.count > 1 ? picture_.mcu_columns() : picture_.plane[scan.component[0]].blocks_wide();
  }
  int rows(const Scan& scan) const {
    return scan.count > 1 ? picture_.mcu_rows() : picture_.plane[scan.component[0]].blocks_high();
  }

  // Return Corrupt if there is nothing to decode with, and Truncated if libjpeg would wait for the rest of a segment.
  Status begin(Scratch& scratch) {
    stop_ = survey();
    if (stop_ == Stop::Refused) return Status::Corrupt;
    if (unsupported_) return Status::Unsupported;
    if (cut_in_segment_) return Status::Truncated;
    Carver measure;
    carve(measure);
    Carver pieces(scratch.get(measure.used()));
    carve(pieces);
    if (smooths_ && !find_dcs()) return Status::Corrupt;
    return prepare(damage_) ? Status::Ok : Status::Corrupt;
  }

  void decode_held(int row) {
    for (int i = 0; i < count_; ++i)
      if (passes_[i].wanted) decode_row(passes_[i], row);
  }

  Status end() {
    for (int i = 0; i < count_; ++i)
      if (passes_[i].wanted) passes_[i].segments.finish();
    if (stop_ == Stop::OutOfData) return Status::Truncated;
    for (int i = 0; i < count_; ++i) damaged_ |= passes_[i].segments.damaged();
    return damaged_ ? Status::Corrupt : Status::Ok;
  }

  // Hold all needed blocks.
  static void keep_here(Plane& p, int16_t* all) {
    if (!p.needed()) return;
    const size_t above = static_cast<size_t>(p.held_rows.begin - p.rows.begin) * static_cast<size_t>(p.columns.size());
    p.coefficients = all + static_cast<size_t>(p.stride) * above;
    std::memset(p.ends, 0, p.block_index(p.held_rows.end));
  }

  // Call visit(header state, end of the entropy-coded data) for each scan until it returns false.
  template <typename Visit>
  Stop each_scan(Visit&& visit) {
    Info state = info_;
    bool frame_seen = true;
    for (;;) {
      Segments segments(data_, size_, nullptr);
      segments.start_scan(state.scan.data, state.restart_interval);
      segments.skip(static_cast<int64_t>(rows(state.scan)) * columns(state.scan));
      size_t pos = segments.position();
      if (!visit(state, pos)) return Stop::AtScan;
      const Stop stop = walk_markers(data_, size_, pos, frame_seen, state);
      if (stop == Stop::Refused && damage_) damage_->note(state.at);
      cut_in_segment_ = stop == Stop::OutOfData && pos != 0;
      if (stop != Stop::AtScan) return stop;
    }
  }

  // Count the scans, read quantisers, and record what is missing.
  Stop survey() {
    bool seen[kMaxComponents] = {};
    const Stop stop = each_scan([&](const Info& state, size_t) {
      const Scan& scan = state.scan;
      precision_.note(scan);
      for (int i = 0; i < scan.count; ++i) {
        const int c = scan.component[i];
        if (seen[c]) continue;  // a component keeps the table of its first scan
        seen[c] = true;
        load_quantiser(data_, state.tables, info_.component[c], picture_.plane[c]);
        quantiser_[c] = state.tables.quantiser[info_.component[c].quantiser];
        wide_[c] = state.tables.wide[info_.component[c].quantiser];
      }
      return ++count_ < kMaxScans;
    });
    const bool complete = std::all_of(seen, seen + info_.components, [](bool s) { return s; });
    damaged_ |= !complete;
    const bool smoothed = info_.progressive && complete && precision_.smoothed(picture_.plane, picture_.planes());
    // Not every libjpeg has this smoothing. So files that the other decoder reads without an error are left to it.
    unsupported_ = count_ == kMaxScans || (smoothed && stop == Stop::AtEnd);
    smooths_ = smoothed && stop == Stop::OutOfData;
    return stop;
  }

  void carve(Carver& pieces) {
    passes_ = pieces.take<Pass>(static_cast<size_t>(count_));
    int at = 0;
    bool seen[kMaxComponents] = {}, again = false;
    each_scan([&](const Info& state, size_t end) {
      Pass local;
      Pass& pass = *(passes_ ? new (passes_ + at++) Pass : &local);
      begin_pass(state, end, seen, pass);
      carve_pass(pieces, pass);
      again |= pass.again;
      return true;
    });
    picture_.carve(pieces);
    picture_.carve_blocks(pieces, picture_.mcu_columns());
    for (int i = 0; i < picture_.planes(); ++i) {
      const Plane& p = picture_.plane[i];
      const size_t blocks = static_cast<size_t>(p.blocks_wide() * p.v);
      if (p.needed() || smooths_) masks_[i] = pieces.take<uint64_t>(info_.progressive ? blocks : 0);
      if (!p.needed()) continue;
      if (smooths_) carve_dcs(pieces, i);
      aside_[i] = pieces.take<int16_t>(again ? 64 * blocks : 0);
      aside_ends_[i] = pieces.take<uint8_t>(again ? blocks : 0);
    }
  }

  // Take memory for the DCs of the blocks that estimates use. Below the last block is padding to whole MCUs.
  void carve_dcs(Carver& pieces, int i) {
    const Plane& p = picture_.plane[i];
    Dcs& dcs = dcs_[i];
    dcs.rows = Range{p.rows.begin - kReach, p.rows.end + kReach}.clipped({0, picture_.mcu_rows() * p.v});
    dcs.columns = Range{p.columns.begin - kReach, p.columns.end + kReach}.clipped({0, p.blocks_wide()});
    const size_t blocks = static_cast<size_t>(dcs.rows.size()) * static_cast<size_t>(dcs.columns.size());
    dcs.memory = pieces.take<int16_t>(blocks);
    if (dcs.memory) std::fill_n(dcs.memory, blocks, int16_t{0});
  }

  void begin_pass(const Info& state, size_t end, bool* seen, Pass& pass) const {
    pass.head = ScanHead(state);
    pass.coding = coding_of(info_.progressive, state.scan);
    pass.length = end - state.scan.data;
    const bool ac = pass.coding == Coding::AcFirst || pass.coding == Coding::AcRefine;
    pass.wanted = smooths_;  // the last row with data in the last scan matters, whatever its components
    for (int i = 0; i < state.scan.count; ++i) {
      const int c = state.scan.component[i];
      const Plane& p = picture_.plane[c];
      pass.wanted |= p.needed() && !(ac && p.stride == 1);
      pass.again |= seen[c] && pass.coding == Coding::Sequential;
      seen[c] = true;
    }
  }

  void carve_pass(Carver& pieces, Pass& pass) const {
    if (!pass.wanted) return;
    const size_t count = pass.head.scan.count;
    pass.entropy = pieces.take<uint8_t>(pass.length + kBitPadding);
    switch (pass.coding) {
      case Coding::Sequential: pass.ac = pieces.take<AcTable>(count); [[fallthrough]];
      case Coding::DcFirst: pass.dc = pieces.take<DcTable>(count); break;
      case Coding::DcRefine: break;
      case Coding::AcFirst:
      case Coding::AcRefine: pass.bands = pieces.take<BandTable>(1); break;
    }
  }

  // Decode all scans for the DCs of all blocks and for the last row of MCUs with data in the last scan. Return false if
  // a table is missing.
  bool find_dcs() {
    Plane original[kMaxComponents];
    std::copy_n(picture_.plane, kMaxComponents, original);
    for (int i = 0; i < picture_.planes(); ++i) {
      Plane& p = picture_.plane[i];
      if (!p.needed()) continue;
      p.stride = 1;
      p.coefficients = dcs_[i].memory;
      p.held_rows = dcs_[i].rows;
      p.held_columns = dcs_[i].columns;
    }
    const bool has_all = prepare(nullptr);
    for (int row = 0; has_all && row < picture_.mcu_rows(); ++row) {
      clear_masks();
      decode_held(row);
      if (passes_[count_ - 1].segments.take_fed()) last_fed_row_ = row;
    }
    std::copy_n(original, kMaxComponents, picture_.plane);
    return has_all;
  }

  bool prepare(Damage* damage) {
    for (int i = 0; i < count_; ++i) {
      Pass& pass = passes_[i];
      const Scan& scan = pass.head.scan;
      if (!pass.wanted) continue;
      if (!has_tables(pass)) return false;
      const bool refinement = pass.coding == Coding::AcRefine;
      if (pass.bands && !build_band(ac_symbols(data_, pass.head, 0), refinement, *pass.bands, damage)) return false;
      if (pass.dc && !build_tables(data_, size_, pass.head, pass.dc, pass.ac, damage)) return false;
      pass.mcu = make_mcu(pass.head, picture_.plane, pass.dc, pass.ac);
      pass.band = {pass.bands, scan.first, scan.last, scan.shift, 0};
      pass.segments = Segments(data_, size_, pass.entropy, damage);
      pass.segments.start_scan(scan.data, pass.head.restart_interval);
    }
    return true;
  }

  // libjpeg supplies the standard's tables to sequential files only.
  bool has_tables(const Pass& pass) const {
    const Scan& scan = pass.head.scan;
    const TableOffsets& tables = pass.head.tables;
    if (pass.bands) return tables.ac[scan.ac[0]] != 0;
    if (pass.coding != Coding::DcFirst) return true;
    return std::all_of(scan.dc, scan.dc + scan.count, [&](uint8_t table) { return tables.dc[table] != 0; });
  }

  void hold(int row) {
    for (int i = 0; i < picture_.planes(); ++i) {
      Plane& p = picture_.plane[i];
      p.held_rows = p.rows.clipped({row * p.v, (row + 1) * p.v});
      p.held_columns = p.columns;
    }
    clear_masks();
  }

  void clear_masks() {
    for (int i = 0; i < picture_.planes(); ++i) {
      const Plane& p = picture_.plane[i];
      if (info_.progressive && masks_[i])
        std::memset(masks_[i], 0, static_cast<size_t>(p.blocks_wide() * p.v) * sizeof(uint64_t));
    }
  }

  // Decode the part of a scan that falls into a row of the frame's MCUs.
  void decode_row(Pass& pass, int row) {
    const Scan& scan = pass.head.scan;
    if (scan.count > 1) return decode_scan_row(pass, row, 0);
    const int v = picture_.plane[scan.component[0]].v, end = std::min((row + 1) * v, rows(scan));
    for (int block_row = row * v; block_row < end; ++block_row) decode_scan_row(pass, block_row, block_row - row * v);
  }

  // Decode row `row` of the scan's own MCUs; for a single component, block row `within` of the frame's MCU row.
  void decode_scan_row(Pass& pass, int row, int within) {
    const Scan& scan = pass.head.scan;
    const int width = columns(scan);
    if (pass.coding == Coding::AcFirst || pass.coding == Coding::AcRefine) {
      const auto decode = pass.coding == Coding::AcFirst ? coders_.ac_first : coders_.ac_refine;
      return pass.segments.decode(BandCoder{decode, pass.band, band_row(scan.component[0], row, within)}, 0, width);
    }
    aim_mcu(pass.head, picture_.plane, row, pass.mcu);
    if (pass.coding == Coding::Sequential) {
      if (pass.again) set_aside(scan);
      pass.segments.decode(SequentialCoder{decode_, pass.mcu}, 0, width);
      if (pass.again) lay_over(scan);
      return;
    }
    const auto decode = pass.coding == Coding::DcFirst ? coders_.dc_first : coders_.dc_refine;
    pass.segments.decode(DcCoder{decode, pass.mcu, scan.shift}, 0, width);
  }

  BandRow band_row(int component, int block_row, int within) const {
    const Plane& p = picture_.plane[component];
    BandRow out{masks_[component] + static_cast<ptrdiff_t>(within) * p.blocks_wide(), nullptr, p.held_columns.begin, 0};
    if (p.stride == 1 || !p.held_rows.has(block_row)) return out;
    out.coefficients = p.coefficients + 64 * p.block_index(block_row);
    out.kept = p.held_columns.size();
    return out;
  }

  // A later sequential scan of a component overwrites only the coefficients that it has. The decoder starts from zeros
  // and writes some, so it uses blocks of its own, which are then merged into the old ones.
  void set_aside(const Scan& scan) {
    for (int i = 0; i < scan.count; ++i) {
      const int c = scan.component[i];
      const Plane& p = picture_.plane[c];
      if (!p.needed() || p.stride == 1) continue;
      const size_t blocks = p.block_index(p.held_rows.end);
      std::copy_n(p.ends, blocks, aside_ends_[c]);
      std::copy_n(p.coefficients, 64 * blocks, aside_[c]);
      std::fill_n(p.ends, blocks, uint8_t{0});
      std::fill_n(p.coefficients, 64 * blocks, int16_t{0});
    }
  }
  void lay_over(const Scan& scan) {
    for (int i = 0; i < scan.count; ++i) {
      const int c = scan.component[i];
      const Plane& p = picture_.plane[c];
      if (!p.needed() || p.stride == 1) continue;
      const size_t blocks = p.block_index(p.held_rows.end);
      for (size_t b = 0; b < blocks; ++b) {
        const int first_ac = p.ends[b] ? 1 : 0;  // without data the DC stays as well
        for (size_t k = 64 * b + first_ac; k < 64 * (b + 1); ++k)
          if (p.coefficients[k] == 0) p.coefficients[k] = aside_[c][k];
        p.ends[b] = std::max(p.ends[b], aside_ends_[c][b]);
      }
    }
  }

  // Derive the `ends` that the inverse DCT needs from the masks.
  void set_ends(int row) {
    for (int i = 0; i < picture_.planes(); ++i) {
      const Plane& p = picture_.plane[i];
      if (!p.needed() || p.stride == 1) continue;
      for (int r = p.held_rows.begin; r < p.held_rows.end; ++r) {
        const uint64_t* masks = masks_[i] + static_cast<ptrdiff_t>(r - row * p.v) * p.blocks_wide();
        uint8_t* ends = p.ends + p.block_index(r);
        for (int x = p.columns.begin; x < p.columns.end; ++x)
          ends[x - p.columns.begin] = static_cast<uint8_t>(64 - std::countl_zero(masks[x] | 1));
      }
    }
  }

  // Replace coefficients of the held blocks that libjpeg would estimate.
  void smooth(int row) {
    for (int i = 0; i < picture_.planes(); ++i) {
      const Plane& p = picture_.plane[i];
      if (!p.needed()) continue;
      const int8_t* missing = row > last_fed_row_ ? precision_.missing_before(i) : precision_.missing(i);
      const int block_rows = std::min(p.v, p.blocks_high() - row * p.v);
      for (int r = p.held_rows.begin; r < p.held_rows.end; ++r) {
        const RowsAround around = rows_around(r, r - row * p.v, block_rows, row, picture_.mcu_rows());
        const size_t index = p.block_index(r);
        for (int x = p.columns.begin; x < p.columns.end; ++x) {
          const size_t at = index + static_cast<size_t>(x - p.columns.begin);
          smooth_block(dcs_[i].around(around, x, p.blocks_wide()), missing, p.quantiser, p.stride == 1,
                       p.coefficients + static_cast<size_t>(p.stride) * at, p.ends[at]);
        }
      }
    }
  }

  // DCs of a component near the window, without estimates.
  struct Dcs {
    Range rows, columns;
    int16_t* memory = nullptr;

    DcNeighbors around(const RowsAround& row, int column, int blocks_wide) const {
      DcNeighbors out;
      for (int y = 0; y <= 2 * kReach; ++y)
        for (int x = 0; x <= 2 * kReach; ++x) {
          const int from = std::clamp(column + x - kReach, 0, blocks_wide - 1);
          out.dc[y][x] = memory[static_cast<size_t>(row.at[y] - rows.begin) * static_cast<size_t>(columns.size()) +
                                static_cast<size_t>(from - columns.begin)];
        }
      return out;
    }
  };

  const uint8_t* data_;
  size_t size_;
  const Info& info_;
  Picture picture_;
  const ProgressiveCoders& coders_;
  DecodeMcus decode_;
  int count_ = 0;
  Damage* damage_;
  bool unsupported_ = false, damaged_ = false;
  bool cut_in_segment_ = false;  // the data end in a marker segment after the first scan
  bool smooths_ = false;         // libjpeg would estimate coefficients
  Precision precision_;
  int last_fed_row_ = 0;  // last row of MCUs in which data of the last scan were left
  Dcs dcs_[kMaxComponents];
  Stop stop_ = Stop::Refused;
  uint32_t quantiser_[kMaxComponents] = {};
  bool wide_[kMaxComponents] = {};
  Pass* passes_ = nullptr;
  uint64_t* masks_[kMaxComponents] = {};
  int16_t* aside_[kMaxComponents] = {};
  uint8_t* aside_ends_[kMaxComponents] = {};
};

}  // namespace

Status decode_multiple(const uint8_t* data, size_t size, const Info& info, const Target& target, Scratch& scratch) {
  return MultipleScans(data, size, info, target).run(scratch);
}

Status decode_coefficients(const uint8_t* data, size_t size, const Info& info, const Target& target, Coefficients& out,
                           Scratch& scratch) {
  return MultipleScans(data, size, info, target).keep(out, scratch);
}

}  // namespace stoker::jpeg
