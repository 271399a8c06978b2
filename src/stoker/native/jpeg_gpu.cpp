// SPDX-License-Identifier: Apache-2.0
#include "jpeg_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda/jpeg_index.cuh"
#include "jpeg_bits.hpp"
#include "jpeg_multiple.hpp"
#include "jpeg_orientation.hpp"
#include "jpeg_parts.hpp"
#include "jpeg_picture.hpp"

namespace stoker::jpeg::gpu {
namespace {

using stoker::gpu::Address;
using stoker::gpu::Batch;
using stoker::gpu::Launch;
using stoker::gpu::Verdict;

constexpr uint32_t kMaxFileBytes = 1u << 28;  // positions in bits fit 32 bits
constexpr int64_t kMaxPixels = int64_t{1} << 26;
constexpr int kMaxSegments = 1 << 16;
constexpr size_t kMaxMadeBytes = size_t{1} << 26;  // of coefficients that the host makes
constexpr size_t kBlockBytes = 64 * sizeof(int16_t);

enum Which : size_t { kUnstuff, kClear, kEntropy, kTransform, kPixels };

int mcu_columns(const Info& info) { return ceil_div(info.width, 8 * info.h_max); }
int mcu_rows(const Info& info) { return ceil_div(info.height, 8 * info.v_max); }

// Restart markers cut a scan in so many segments.
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

// What one scan cannot be decoded for alone: the host makes the coefficients.
bool in_several_scans(const Info& info) { return info.progressive || info.scan.count < info.components; }

bool is_jpeg(const View& file, const uint8_t* data) {
  return file.rank == 1 && file.shape[0] >= 3 && file.stride[0] == 1 && data[0] == 0xFF && data[1] == 0xD8;
}

Wanted wanted_of(Format format, Model model) {
  if (format == Format::ANY) return model == Model::Gray ? Wanted::GRAY : Wanted::RGB;
  return static_cast<Wanted>(format);
}
static_assert(static_cast<int>(Wanted::YCbCr) == static_cast<int>(Format::YCbCr));
static_assert(static_cast<int>(Colour::RGB) == static_cast<int>(Model::RGB));
static_assert(static_cast<int>(Spread::Repeat) == static_cast<int>(Upsample::Repeat));

// How readers make pixels of the planes of what `row` describes.
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

// Whether the samples of a row stay, and whether pixels are made of them.
bool in_planes(const Row& row) { return row.image.at != 0; }
bool makes_pixels(const Row& row) { return !in_planes(row) || row.image.pixels; }

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

// What the scan's components need where there is one scan. The parser has looked at its components alone: of others the
// quantisers may not exist, nor need all blocks fit an MCU.
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

// Components that use the same two tables share them; and after how many blocks the MCU's tables repeat.
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

Row describe(const Info& info, const Window& window, Format format, int scale_log2) {
  Row row = {};
  const Picture picture(info, {window, format, scale_log2, nullptr, 0, nullptr});
  for (int i = 0; i < info.components; ++i) row.plane[i] = describe_plane(picture.plane[i]);
  if (!in_several_scans(info)) {
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

// Hands out addresses one behind the other.
class Layout {
 public:
  uint64_t take(size_t bytes) {
    const uint64_t at = used_;
    used_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t used() const { return used_; }

 private:
  size_t used_ = 0;
};

size_t blocks_of(const Plane& plane) { return static_cast<size_t>(plane.columns) * plane.rows; }

// Rows that are in memory together.
struct Group {
  std::vector<Place> places;  // addresses are offsets until the memory is known
  size_t working = 0;         // bytes before the coefficients
  size_t coefficients = 0;    // bytes
};

// Blocks of the scan up to the last one that is needed.
size_t scan_blocks(const Row& row) { return size_t{row.needed_rows} * row.mcu_columns * row.blocks; }

// A block takes two bits or more, one of DC and one of AC. What a few bytes claim to be would take a lot of memory.
bool may_have(const Row& row, uint32_t mcu_rows) {
  const uint64_t blocks = uint64_t{mcu_rows} * row.mcu_columns * row.blocks;
  return blocks <= 4 * uint64_t{row.file_bytes - row.scan};
}

uint32_t segments_in(const Row& row) {
  return static_cast<uint32_t>(segments_of(int64_t{row.mcu_columns} * row.mcu_rows, row.restart_interval));
}

// About as much as a row's place and coefficients take.
size_t memory_of(const Row& row, uint32_t threads) {
  size_t bytes = 0;
  for (const Plane& p : row.plane) bytes += blocks_of(p) * ((row.made ? 0 : kBlockBytes) + (in_planes(row) ? 0 : 64));
  if (row.made) return bytes;
  const size_t segments = segments_in(row);
  bytes += row.file_bytes - row.scan + 2 * sizeof(uint32_t) * segments + SubsequenceState::kBytes * (threads + segments);
  return bytes + (sizeof(uint32_t) + sizeof(int16_t)) * scan_blocks(row);
}

uint32_t pitch_of(const Plane& p) { return (uint32_t{p.size} * p.columns + 31) / 32 * 32; }
size_t sample_bytes(const Plane& p) { return size_t{pitch_of(p)} * p.size * p.rows; }

void place_entropy(const Row& row, uint32_t threads, Layout& layout, Place& place) {
  place.segments = segments_in(row);
  place.states = threads + place.segments;
  place.words = layout.take(row.file_bytes - row.scan + 4 * (kPaddingWords + 1));
  place.segment_start = layout.take(4 * (size_t{place.segments} + 1));
  place.segment_first = layout.take(4 * (size_t{place.segments} + 1));
  place.state = layout.take(SubsequenceState::kBytes * place.states);
  place.checksum = layout.take(sizeof(Checksum));
  const size_t blocks = scan_blocks(row);
  place.homes = layout.take(sizeof(uint32_t) * (blocks + 2));
  place.dc = layout.take(sizeof(int16_t) * blocks);
}

// Where the samples that are there begin.
Address first_sample(const planar::Component& c, const Plane& p) {
  return c.corner + uint64_t{p.size} * p.first_row * c.pitch + uint64_t{p.size} * p.first_column;
}

// Describes a component whose samples are in memory from `at` on. They lie as many bytes behind a multiple of 4 as they
// have columns before them.
planar::Component describe_component(const Plane& p, Address at) {
  planar::Component c = {};
  static_cast<planar::Shape&>(c) = p;
  c.pitch = pitch_of(p);
  c.first = p.size * p.first_column;
  c.last = std::min(c.first + p.size * p.columns, static_cast<int32_t>(p.width)) - 1;
  const uint64_t before = static_cast<uint64_t>(c.first);
  c.corner = at + before % 4 - uint64_t{p.size} * p.first_row * c.pitch - before;
  return c;
}

Place place_row(const Row& row, uint32_t index, uint32_t threads, Layout& layout, Layout& coefficients) {
  Place place = {};
  place.row = index;
  if (!row.made) place_entropy(row, threads, layout, place);
  size_t kept = 0;
  for (int i = 0; i < row.components; ++i) {
    const Plane& p = row.plane[i];
    place.pitch[i] = pitch_of(p);
    place.samples[i] = in_planes(row) ? first_sample(row.image.component[i], p) : layout.take(sample_bytes(p));
    place.first_home[i] = row.made ? row.first_made[i] : static_cast<uint32_t>(kept);
    kept += blocks_of(p);
  }
  place.coefficients = row.made ? row.made : coefficients.take(kBlockBytes * kept);
  return place;
}

void move_by(Place& place, const Row& row, Address memory, Address coefficients) {
  for (int i = 0; i < row.components && !in_planes(row); ++i) place.samples[i] += memory;
  if (row.made) return;
  place.words += memory;
  place.segment_start += memory;
  place.segment_first += memory;
  place.state += memory;
  place.checksum += memory;
  place.homes += memory;
  place.dc += memory;
  place.coefficients += coefficients;
}

class Decode : public stoker::gpu::Kernel {
 public:
  Decode(bool adjust, Format format, Functions functions, Settings settings, int scale_log2, std::shared_ptr<Index> index,
         bool in_parts, std::shared_ptr<const Source> source)
      : adjust_(adjust), format_(format), scale_(scale_log2), functions_(std::move(functions)), set_(settings),
        index_(std::move(index)), in_parts_(in_parts), source_(std::move(source)) {}

  size_t slot_bytes() const override { return sizeof(Row); }

  Outcome run(const Call& c) const override {
    const View& file = *c.in[0];
    const uint8_t* const data = c.host_in[0]->data;
    const size_t size = static_cast<size_t>(file.shape[0]);
    Info info;
    if (!is_jpeg(file, data)) return refuse(c, "not a JPEG file");
    if (!parse(data, size, info)) return refuse(c, info.reason);
    if (size > kMaxFileBytes) return refuse(c, "larger than 256 MiB");
    const KnownFile* const known = part_read(c).of;  // with this header
    if (!known || !known->accepted.load(std::memory_order_relaxed)) {
      if (const char* reason = refusal(data, info)) return refuse(c, reason);
      if (known) known->accepted.store(true, std::memory_order_relaxed);
    }
    const View& out = *c.out[0];
    const Turn turn = turn_of(adjust_ ? info.orientation : 1);
    const int32_t h = static_cast<int32_t>(out.shape[0]), w = static_cast<int32_t>(out.shape[1]);
    if (h == 0 || w == 0) return Outcome::Ok;
    if (int64_t{h} * w > kMaxPixels) return refuse(c, "a window of more than 64 megapixels");
    const Extent whole = scaled_extent(info, scale_);
    const Window window =
        stored_window(whole, turn, static_cast<int32_t>(c.params[0]), static_cast<int32_t>(c.params[1]), h, w);
    if (window.x0 < 0 || window.y0 < 0 || window.x1 > whole.width || window.y1 > whole.height)
      return refuse(c, "a window that leaves the image");
    Row row = describe(info, window, format_, scale_);
    row.file = reinterpret_cast<Address>(file.data);
    row.file_bytes = static_cast<uint32_t>(size);
    if (c.in_planes) {
      leave_planes(c, turn, row);
    } else {
      const Placement place = placement(window, turn, out);
      row.out = reinterpret_cast<Address>(out.data) + static_cast<uint64_t>(place.offset);
      row.step_y = place.step_y;
      row.step_x = place.step_x;
    }
    if (in_several_scans(info)) {
      const char* const reason = make_coefficients(c, info, {window, format_, scale_, nullptr, 0, nullptr}, row);
      if (reason) return refuse(c, reason);
    } else {
      const char* const reason = look_up(c, row);
      if (reason) return refuse(c, reason);
    }
    std::memcpy(c.slot, &row, sizeof row);
    return Outcome::Ok;
  }

  void launch(Batch& batch) const override {
    const Row* const rows = reinterpret_cast<const Row*>(batch.slots());
    std::vector<uint32_t> order;
    for (int64_t i = 0; i < batch.rows(); ++i)
      if (batch.active(i) && rows[i].height > 0) order.push_back(static_cast<uint32_t>(i));
    if (order.empty()) return;
    // Long files first, so that none is left when the others have finished; those without entropy decoding at the end.
    const auto length = [&](uint32_t i) { return rows[i].made ? 0 : rows[i].file_bytes; };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(length(b), a) < std::pair(length(a), b);
    });
    std::vector<Group> groups = group(rows, order);
    size_t bytes = 0;
    for (const Group& g : groups) bytes = std::max(bytes, g.working + g.coefficients);
    const Address memory = batch.scratch(bytes);
    // A report has a word per row; then an outline for each row whose entry is to be written.
    size_t reported = sizeof(uint32_t) * static_cast<size_t>(batch.rows());
    for (const uint32_t i : order) {
      if (!rows[i].index || rows[i].known) continue;
      reinterpret_cast<Row*>(batch.slot(i))->outline = static_cast<uint32_t>(reported);
      reported += sizeof(Outline);
    }
    const Address report = batch.report(reported);
    for (const uint32_t i : order)
      if (in_planes(rows[i])) reinterpret_cast<Row*>(batch.slot(i))->out = rows[i].image.pixels;
    for (Group& g : groups) launch_group(batch, rows, g, memory, report);
  }

  Verdict judge(const uint8_t* report, int64_t index, const uint8_t* slot, std::string*) const override {
    const Row& row = *reinterpret_cast<const Row*>(slot);
    uint32_t status = 0;
    std::memcpy(&status, report + 4 * index, sizeof status);
    const bool good = !(status & kFailures);
    if (row.index && row.known) {
      index_->read(row.slot, !(status & (kStrayed | kNotRead)), row.part_end != 0);
    } else if (row.index) {
      Outline outline;
      std::memcpy(&outline, report + row.outline, sizeof outline);
      index_->written(row.slot, good ? &outline : nullptr);
    }
    return good ? Verdict::Good : Verdict::Redo;
  }

  bool complete(const Call& c) const override {
    const PartRead part = part_read(c);
    if (!part.of) return true;
    if (!source_) return *c.error = "the file is not there as a whole", false;
    UploadRoom room(c.memory);
    if (!source_->whole(c, part.of->header, room, *c.host_in[0])) return false;
    const PartRead whole;
    std::memcpy(c.host_in[1]->data, &whole, sizeof whole);  // from now on
    return true;
  }

 private:
  static Outcome refuse(const Call& c, const char* reason) {
    *c.error = reason;
    return Outcome::Python;
  }

  // Memory of the batch for a file that is read after all.
  class UploadRoom final : public Room {
   public:
    explicit UploadRoom(stoker::gpu::RowMemory* memory) : memory_(memory) {}
    uint8_t* get(size_t bytes) override { return memory_->host_room(bytes); }

   private:
    stoker::gpu::RowMemory* memory_;
  };

  PartRead part_read(const Call& c) const {
    PartRead part;
    if (in_parts_) std::memcpy(&part, c.host_in[1]->data, sizeof part);
    return part;
  }

  // The row's samples stay in memory of the batch, and the output shows pixels that are made only if somebody asks. What is
  // said of them is in the row's slot: it is to cost no lock.
  static void leave_planes(const Call& c, Turn turn, Row& row) {
    planar::Image& image = row.image;
    Layout layout;
    uint64_t offset[kMaxPlanes];
    for (int i = 0; i < row.components; ++i) offset[i] = layout.take(sample_bytes(row.plane[i]) + 4);
    image.at = c.memory->device_room(layout.used());
    for (int i = 0; i < row.components; ++i)
      image.component[i] = describe_component(row.plane[i], image.at + offset[i]);
    image.x0 = row.x0;
    image.y0 = row.y0;
    image.width = row.width;
    image.height = row.height;
    image.form = form_of(row);
    image.blue_first = row.wanted == Wanted::BGR;
    row.step_x = 3;
    row.step_y = int64_t{3} * row.width;
    const Window all{0, 0, row.width, row.height};
    *c.out[0] = shown(reinterpret_cast<uint8_t*>(image.at), row.step_y, row.step_x, all, turn, *c.out[0]);
    c.out[0]->planes = &reinterpret_cast<Row*>(c.slot)->image;
  }

  // What is known of the file; or why it is left to the CPU.
  const char* look_up(const Call& c, Row& row) const {
    const PartRead part = part_read(c);
    if (part.of) return take_part(part, row);
    if (!may_have(row, row.needed_rows)) return "data that end before the picture does";
    // An entry is of the whole picture.
    if (!index_ || segments_in(row) > kIndexSegments || set_.entropy_threads > kIndexSubsequences ||
        !may_have(row, row.mcu_rows))
      return nullptr;
    const uint8_t* const data = c.host_in[0]->data;
    const std::string_view header(reinterpret_cast<const char*>(data), row.scan);
    const Index::Found found = index_->find(file_key(data, row.file_bytes, row.scan), header, row.file_bytes,
                                            source_ && part.state ? source_->name(c, part.state) : 0);
    if (found.use == Index::Use::None) return nullptr;
    take_entry(*found.file, row);
    row.known = found.use == Index::Use::Read;
    if (found.use == Index::Use::Write) row.needed_rows = row.mcu_rows;  // other windows need other rows
    return nullptr;
  }

  static void take_entry(const KnownFile& known, Row& row) {
    row.index = known.entry;
    row.slot = known.slot;
    row.seed = known.seed;
  }

  const char* take_part(const PartRead& part, Row& row) const {
    const KnownFile& known = *part.of;
    if (row.scan != known.header.size()) return "a part of another file";
    take_entry(known, row);
    row.known = true;
    row.part_begin = static_cast<uint32_t>(part.begin);
    row.part_end = static_cast<uint32_t>(part.end);
    row.part_word = row.part_begin * kChunkSubsequences * (known.outline.bits / 32);
    return nullptr;
  }

  // The scans of a file in the memory that the device gets; otherwise why not.
  static const char* make_coefficients(const Call& c, const Info& info, const Target& target, Row& row) {
    size_t bytes = 0;
    for (int i = 0; i < row.components; ++i) {
      row.first_made[i] = static_cast<uint32_t>(bytes / kBlockBytes);
      const size_t of_plane = blocks_of(row.plane[i]) * (row.plane[i].size == 1 ? sizeof(int16_t) : kBlockBytes);
      bytes += (of_plane + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    }
    if (bytes > kMaxMadeBytes) return "more than 64 MiB of coefficients in several scans";
    uint8_t* const memory = c.memory->host_room(bytes);
    std::memset(memory, 0, bytes);
    Coefficients made;
    for (int i = 0; i < row.components; ++i)
      made.plane[i] = reinterpret_cast<int16_t*>(memory + kBlockBytes * row.first_made[i]);
    const jpeg::Status status =
        decode_coefficients(c.host_in[0]->data, row.file_bytes, info, target, made, c.work[0]);
    if (status == jpeg::Status::Unsupported) return "scans that are left out";
    if (status != jpeg::Status::Ok) return "damaged data in several scans";
    for (int i = 0; i < row.components; ++i) {
      if (made.quantiser[i] == 0) return "no quantisers";
      row.plane[i].quantiser = made.quantiser[i];
      row.plane[i].wide = made.wide[i];
    }
    row.made = c.memory->behind(memory);
    return nullptr;
  }

  std::vector<Group> group(const Row* rows, const std::vector<uint32_t>& order) const {
    std::vector<Group> groups;
    Layout working, coefficients;
    size_t taken = set_.memory;
    for (const uint32_t i : order) {
      const size_t own = memory_of(rows[i], set_.entropy_threads);
      taken += own;
      if (taken > set_.memory) {
        groups.emplace_back();
        groups.back().places.reserve(order.size());
        working = coefficients = {};
        taken = own;
      }
      Group& g = groups.back();
      g.places.push_back(place_row(rows[i], i, set_.entropy_threads, working, coefficients));
      g.working = working.used();
      g.coefficients = coefficients.used();
    }
    return groups;
  }

  // The list of CTAs that share out `count` things per place and plane, written where the device gets it.
  template <typename Count>
  static std::pair<Address, uint32_t> items(Batch& batch, const Group& g, int planes, uint32_t per_item, Count&& count) {
    size_t all = 0;
    for (const Place& p : g.places)
      for (int plane = 0; plane < planes; ++plane) all += (count(p.row, plane) + per_item - 1) / per_item;
    if (all == 0) return {};
    Address at = 0;
    Item* to = reinterpret_cast<Item*>(batch.upload(all * sizeof(Item), &at));
    for (uint32_t p = 0; p < g.places.size(); ++p)
      for (int plane = 0; plane < planes; ++plane)
        for (uint32_t first = 0, end = count(g.places[p].row, plane); first < end; first += per_item)
          *to++ = {p | static_cast<uint32_t>(plane) << 30, first};
    return {at, static_cast<uint32_t>(all)};
  }

  void launch_group(Batch& batch, const Row* rows, Group& g, Address memory, Address status) const {
    for (Place& p : g.places) move_by(p, rows[p.row], memory, memory + g.working);
    const Address slots = batch.device_slots();
    Address places = 0;
    std::memcpy(batch.upload(g.places.size() * sizeof(Place), &places), g.places.data(),
                g.places.size() * sizeof(Place));
    const auto blocks = items(batch, g, kMaxPlanes, kBlocksPerItem, [&](uint32_t row, int plane) {
      return static_cast<uint32_t>(blocks_of(rows[row].plane[plane]));
    });
    const auto pixels = items(batch, g, 1, kGroupsPerItem, [&](uint32_t row, int) {
      if (!makes_pixels(rows[row])) return uint32_t{0};
      return (static_cast<uint32_t>(rows[row].width) / kPixelsPerGroup + 2) * static_cast<uint32_t>(rows[row].height);
    });
    const auto coded = std::count_if(g.places.begin(), g.places.end(), [&](const Place& p) { return !rows[p.row].made; });
    if (const uint32_t count = static_cast<uint32_t>(coded)) {
      issue(batch, kUnstuff, count, set_.unstuff_threads, {slots, places, status});
      const uint64_t clear = g.coefficients / 16;
      issue(batch, kClear, static_cast<uint32_t>(std::clamp<uint64_t>(clear / 2048, 1, 1024)), set_.pixel_threads,
            {memory + g.working, clear});
      issue(batch, kEntropy, count, set_.entropy_threads, {slots, places, status, set_.min_bits, set_.max_rounds});
    }
    issue(batch, kTransform, blocks.second, set_.pixel_threads, {slots, places, status, blocks.first});
    if (pixels.second > 0) issue(batch, kPixels, pixels.second, set_.pixel_threads, {slots, places, status, pixels.first});
  }

  void issue(Batch& batch, Which which, uint32_t grid, uint32_t block, std::initializer_list<uint64_t> values) const {
    Launch launch;
    launch.function = functions_[which].get();
    launch.grid[0] = grid;
    launch.block[0] = block;
    batch.launch(launch.with(values));
  }

  bool adjust_;
  Format format_;
  int scale_;
  Functions functions_;
  Settings set_;
  std::shared_ptr<Index> index_;  // null: none is kept
  const bool in_parts_;
  const std::shared_ptr<const Source> source_;
};

}  // namespace

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
  const uint32_t behind = static_cast<uint32_t>(picture.needed_mcu_rows()) * per_row;
  const Outline& outline = file.outline;
  Part part = {0, 1, 0, 0};
  while (part.begin + 1 < outline.chunks && outline.chunk[part.begin + 1].blocks < first) ++part.begin;
  for (part.end = part.begin + 1; part.end < outline.chunks && outline.chunk[part.end].blocks < behind;) ++part.end;
  // The last symbol may end behind the chunk in which it begins.
  if (part.end < outline.chunks) ++part.end;
  const uint64_t data = file.header.size();
  part.offset = data + outline.chunk[part.begin].offset;
  part.bytes = (part.end < outline.chunks ? data + outline.chunk[part.end].offset : file.size) - part.offset;
  return part;
}

const char* refusal(const uint8_t* data, const Info& info) {
  if (info.support != Support::Native) return info.reason;
  if (info.components > kMaxPlanes) return "four components";
  if (in_several_scans(info)) return nullptr;
  if (!has_tables(info)) return "no Huffman tables";
  if (!possible_codes(data, info)) return "impossible Huffman tables";
  const int64_t mcus = int64_t{mcu_columns(info)} * mcu_rows(info);
  if (segments_of(mcus, info.restart_interval) > kMaxSegments) return "more than 65536 restart segments";
  return nullptr;
}

std::shared_ptr<const stoker::gpu::Kernel> make_decode(bool adjust_orientation, Format format, Functions functions,
                                                       Settings settings, int scale_log2,
                                                       std::shared_ptr<Index> index, bool in_parts,
                                                       std::shared_ptr<const Source> source) {
  return std::make_shared<Decode>(adjust_orientation, format, std::move(functions), settings, scale_log2,
                                  std::move(index), in_parts, std::move(source));
}

}  // namespace stoker::jpeg::gpu
