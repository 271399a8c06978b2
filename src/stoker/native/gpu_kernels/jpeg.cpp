// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/jpeg.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/whole.hpp"
#include "gpu_kernels/jpeg_parts.hpp"
#include "gpu_kernels/jpeg_row_buffers.hpp"
#include "gpu_kernels/row_blocks.hpp"
#include "jpeg/multiple.hpp"
#include "jpeg/orientation.hpp"
#include "jpeg/scan_limit.hpp"
#include "plan/check.hpp"

namespace stoker::jpeg::gpu {
namespace {

using stoker::gpu::Address;
using stoker::gpu::Batch;
using stoker::gpu::blocks_for;
using stoker::gpu::Launch;
using stoker::gpu::RowBlocks;
using stoker::gpu::Verdict;

constexpr uint32_t kMaxFileBytes = 1u << 28;  // so that positions in bits fit into 32 bits
constexpr int64_t kMaxPixels = int64_t{1} << 26;
// Blocks (CTAs) that prepare a row that is spread. An unstuffing block also counts the bytes before its own.
constexpr int64_t kHomesPerCta = 1 << 10;
constexpr uint64_t kMaxUnstuffers = 32, kMaxFinders = 16;
constexpr size_t kMaxMadeBytes = size_t{1} << 26;  // of coefficients that the host decodes

enum Which : size_t { kUnstuff, kClear, kEntropy, kPrepare, kGuess, kSynchronise, kWrite, kTransform, kPixels };

bool is_jpeg(const View& file, const uint8_t* data) {
  return file.rank == 1 && file.shape[0] >= 3 && file.stride[0] == 1 && data[0] == 0xFF && data[1] == 0xD8;
}

// Return the type of the elements that a function writes.
DType element_type_of(const stoker::gpu::Function& function) {
  for (const ElementType& type : kElementTypes)
    if (function.name == std::string(kFunctionNames[kPixels]) + type.suffix) return type.dtype;
  throw std::invalid_argument("expected a function that writes pixels, got " + function.name);
}

class Decode : public stoker::gpu::Kernel {
 public:
  Decode(bool adjust, Format format, Functions functions, Settings settings, int scale_log2,
         std::shared_ptr<Index> index, bool in_parts, std::shared_ptr<const FileSource> source)
      : adjust_(adjust),
        format_(format),
        scale_(scale_log2),
        element_type_(element_type_of(*functions[kPixels])),
        functions_(std::move(functions)),
        set_(settings),
        index_(std::move(index)),
        in_parts_(in_parts),
        source_(std::move(source)) {}

  Ports ports() const override {
    PortRule file = port_of(DType::U8, 1), part = port_of(DType::I64, 1), image = port_of(element_type_, 3);
    file.on_host = part.on_host = true;
    image.in_planes = element_type_ == DType::U8;
    Ports ports{.kernel = "decode", .in = {file}, .out = {image}, .params = 2};
    if (in_parts_) ports.in.push_back(part);
    return ports;
  }
  // The numbers have the address of what the index knows, so that they must come from the kernel that writes it.
  void check(const StepFacts& step) const override {
    if (in_parts_)
      step.require(dynamic_cast<const PartReader*>(step.maker(1)) && step.maker(0) == step.maker(1), "inputs",
                   "the outputs of `read_window`", "others");
  }
  bool fits(const Call& c) const override {
    if (!in_parts_ || (c.in[1]->elements() == sizeof(PartRead) / 8 && c.in[1]->contiguous())) return true;
    *c.error = "expected the numbers of a file's part";
    return false;
  }

  size_t slot_bytes() const override { return sizeof(Row); }

  Outcome run(const Call& c) const override {
    const View& file = *c.in[0];
    const uint8_t* const data = c.host_in[0]->data;
    const size_t size = static_cast<size_t>(file.shape[0]);
    Info info;
    if (!is_jpeg(file, data)) return refuse(c, "not a JPEG file");
    if (!parse(data, size, info)) return refuse(c, info.reason);
    if (size > kMaxFileBytes) return refuse(c, "larger than 256 MiB");
    const KnownFile* const known = part_read(c).of;  // whose header this is
    if (!known || !known->accepted.load(std::memory_order_relaxed)) {
      if (const char* reason = refusal(data, info)) return refuse(c, reason);
      if (known) known->accepted.store(true, std::memory_order_relaxed);
    }
    const View& out = *c.out[0];
    if (out.shape[2] != channels(info, format_)) return refuse(c, "memory for another number of channels");
    const Turn turn = turn_of(adjust_ ? info.orientation : 1);
    const int32_t h = size_within(out.shape[0]), w = size_within(out.shape[1]);
    if (h == 0 || w == 0) return Outcome::Ok;
    if (int64_t{h} * w > kMaxPixels) return refuse(c, "a window of more than 64 megapixels");
    const Extent whole = scaled_extent(info, scale_);
    const Window window = stored_window(whole, turn, position_of(c.params[0]), position_of(c.params[1]), h, w);
    if (!is_inside(window, whole)) return refuse(c, "a window that leaves the image");
    Row row = describe(info, window, format_, scale_);
    row.file = reinterpret_cast<Address>(file.data);
    row.file_bytes = static_cast<uint32_t>(size);
    if (c.in_planes) {
      leave_planes(c, turn, row);
    } else {
      const Placement placed = placement(window, turn, out);
      row.out = reinterpret_cast<Address>(out.data) + static_cast<uint64_t>(placed.offset);
      row.step_y = placed.step_y;
      row.step_x = placed.step_x;
    }
    if (has_several_scans(info)) {
      const char* const reason = make_coefficients(c, info, {window, format_, scale_, nullptr, 0, nullptr}, row);
      if (reason) return refuse(c, reason);
    } else {
      const char* const reason = look_up(c, row);
      if (reason) return refuse(c, reason);
      if (row.known) row.shares = static_cast<uint16_t>(shares_of(row, set_.entropy_threads));
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
    // Long files first, so that none of them is left at the end; rows without entropy decoding last.
    const auto length = [&](uint32_t i) { return rows[i].host_coefficients ? 0 : rows[i].file_bytes; };
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return std::pair(length(b), a) < std::pair(length(a), b); });
    std::vector<Group> groups = group(rows, order);
    size_t bytes = 0;
    for (const Group& g : groups) bytes = std::max(bytes, g.working + g.coefficients);
    const Address memory = batch.scratch(bytes);
    // The report has a word per row, then an outline for each row whose entry is written.
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

  void abandon(const uint8_t* slot) const noexcept override {
    const Row& row = *reinterpret_cast<const Row*>(slot);
    if (row.index && !row.known) index_->not_written(row.slot);
  }

  bool complete(const Call& c) const override {
    const PartRead part = part_read(c);
    if (!part.of) return true;
    if (!source_) return *c.error = "the file is not there as a whole", false;
    UploadAllocator allocator(c.memory);
    if (!source_->whole(c, part.of->header, allocator, *c.host_in[0])) return false;
    const PartRead whole;
    std::memcpy(c.host_in[1]->data, &whole, sizeof whole);  // the file is complete from now on
    return true;
  }

 private:
  static Outcome refuse(const Call& c, const char* reason) {
    *c.error = reason;
    return Outcome::Python;
  }

  // Memory of the batch, for a file that must be read as a whole after all.
  class UploadAllocator final : public BufferAllocator {
   public:
    explicit UploadAllocator(stoker::gpu::RowMemory* memory) : memory_(memory) {}
    uint8_t* get(size_t bytes) override { return memory_->allocate_host(bytes); }

   private:
    stoker::gpu::RowMemory* memory_;
  };

  PartRead part_read(const Call& c) const {
    PartRead part;
    if (in_parts_) std::memcpy(&part, c.host_in[1]->data, sizeof part);
    return part;
  }

  // The row's samples stay in memory of the batch, and the output is a view of pixels that are only computed if a step
  // reads them. The image's description is stored in the row's slot, so that it needs no lock.
  static void leave_planes(const Call& c, Turn turn, Row& row) {
    planar::Image& image = row.image;
    BumpAllocator allocator;
    uint64_t offset[kMaxPlanes];
    for (int i = 0; i < row.components; ++i) offset[i] = allocator.allocate(sample_bytes(row.plane[i]) + 4);
    image.at = c.memory->allocate_device(allocator.used());
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

  // Look the file up in the index, or return why it is left to the CPU.
  const char* look_up(const Call& c, Row& row) const {
    const PartRead part = part_read(c);
    if (part.of) return take_part(part, row);
    if (!may_have(row, row.needed_rows)) return "data that end before the picture does";
    // An entry covers the whole picture.
    if (!index_ || segments_in(row) > kIndexSegments || set_.entropy_threads > kIndexSubsequences ||
        !may_have(row, row.mcu_rows))
      return nullptr;
    const uint8_t* const data = c.host_in[0]->data;
    const std::string_view header(reinterpret_cast<const char*>(data), row.scan);
    const uint64_t name = source_ && part.state ? source_->name(c, part.state) : 0;
    const Index::Found found =
        index_->find({file_key(data, row.file_bytes, row.scan), name, header, row.file_bytes, segments_in(row) > 1});
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
    row.pieces = static_cast<uint16_t>(known.pieces);
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

  // Decode the scans of a file into memory that is sent to the device, or return why that is impossible.
  const char* make_coefficients(const Call& c, const Info& info, const Target& target, Row& row) const {
    size_t bytes = 0;
    for (int i = 0; i < row.components; ++i) {
      row.first_host_block[i] = static_cast<uint32_t>(bytes / kBlockBytes);
      const size_t of_plane = blocks_of(row.plane[i]) * (row.plane[i].size == 1 ? sizeof(int16_t) : kBlockBytes);
      bytes += (of_plane + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    }
    if (!too_many_scans(c.host_in[0]->data, row.file_bytes, info.width, info.height, set_.max_scan_pixels).empty())
      return "too many scans";
    if (bytes > kMaxMadeBytes) return "more than 64 MiB of coefficients in several scans";
    uint8_t* const memory = c.memory->allocate_host(bytes);
    std::memset(memory, 0, bytes);
    Coefficients host_coefficients;
    for (int i = 0; i < row.components; ++i)
      host_coefficients.plane[i] = reinterpret_cast<int16_t*>(memory + kBlockBytes * row.first_host_block[i]);
    const jpeg::Status status =
        decode_coefficients(c.host_in[0]->data, row.file_bytes, info, target, host_coefficients, c.work[0]);
    if (status == jpeg::Status::Unsupported) return "scans that are left out";
    if (status != jpeg::Status::Ok) return "damaged data in several scans";
    for (int i = 0; i < row.components; ++i) {
      if (host_coefficients.quantiser[i] == 0) return "no quantisers";
      row.plane[i].quantiser = host_coefficients.quantiser[i];
      row.plane[i].wide = host_coefficients.wide[i];
    }
    row.host_coefficients = c.memory->device_address(memory);
    return nullptr;
  }

  // Return whether a row of a batch of `count` is spread over the device. Rows with an index entry are not, since an
  // entry has a fixed number of subsequences, nor are files with restart markers, which are rare.
  bool is_spread(const Row& row, size_t count) const {
    return count <= set_.spread_rows && !row.index && !row.host_coefficients && segments_in(row) == 1;
  }

  // Return the greatest number of subsequences of a row that is spread.
  uint32_t subsequences_of(const Row& row) const {
    const uint64_t bits = 8 * uint64_t{row.file_bytes - row.scan};
    return static_cast<uint32_t>(std::min<uint64_t>(bits / set_.spread_bits + 1, set_.subsequences));
  }

  std::vector<Group> group(const Row* rows, const std::vector<uint32_t>& order) const {
    std::vector<Group> groups;
    BumpAllocator working, coefficients;
    size_t taken = 0;
    for (const uint32_t i : order) {
      const bool spread = is_spread(rows[i], order.size());
      const uint32_t states = spread ? subsequences_of(rows[i]) : set_.entropy_threads;
      const size_t own = memory_of(rows[i], states, spread);
      if (groups.empty() || taken + own > set_.memory) {  // a row may need no memory
        groups.emplace_back();
        groups.back().row_buffers.reserve(order.size());
        working = coefficients = {};
        taken = 0;
      }
      taken += own;
      Group& g = groups.back();
      g.row_buffers.push_back(allocate_row(rows[i], i, states, spread, working, coefficients));
      g.working = working.used();
      g.coefficients = coefficients.used();
    }
    return groups;
  }

  void launch_group(Batch& batch, const Row* rows, Group& g, Address memory, Address status) const {
    RowBlocks shares, preparers, guesses, one_each, writers, blocks, pixels;
    uint32_t coded = 0;  // rows with entropy-coded data, which come first
    for (uint32_t p = 0; p < g.row_buffers.size(); ++p) {
      RowBuffers& buffers = g.row_buffers[p];
      const Row& row = rows[buffers.row];
      move_by(buffers, row, memory, memory + g.working);
      coded += !row.host_coefficients;
      if (buffers.tables) {
        buffers.unstuffers = static_cast<uint32_t>(std::clamp<uint64_t>(
            blocks_for(row.file_bytes - row.scan, int64_t{kUnstuffBytes} * set_.unstuff_threads), 1, kMaxUnstuffers));
        buffers.finders = static_cast<uint32_t>(
            std::clamp<uint64_t>(blocks_for(static_cast<int64_t>(scan_blocks(row)), kHomesPerCta), 1, kMaxFinders));
        preparers.add(p, 1 + buffers.finders + buffers.unstuffers);
        guesses.add(p, blocks_for(buffers.states, set_.guess_threads / row.period));
        one_each.add(p, 1);
        buffers.writers = static_cast<uint32_t>(blocks_for(int64_t{buffers.states} * (kMarks + 1), set_.write_threads));
        writers.add(p, buffers.writers);
      } else if (!row.host_coefficients) {
        shares.add(p, row.known ? row.shares : 1);
      }
      for (uint32_t plane = 0; plane < kMaxPlanes; ++plane)
        blocks.add(kMaxPlanes * p + plane,
                   blocks_for(static_cast<int64_t>(blocks_of(row.plane[plane])), kBlocksPerCta));
      if (makes_pixels(row))
        pixels.add(p, blocks_for((int64_t{row.width} / kPixelsPerGroup + 2) * row.height, kGroupsPerCta));
    }
    const Address slots = batch.device_slots();
    Address row_buffers = 0;
    std::memcpy(batch.upload(g.row_buffers.size() * sizeof(RowBuffers), &row_buffers), g.row_buffers.data(),
                g.row_buffers.size() * sizeof(RowBuffers));
    if (coded) {
      if (!shares.empty()) issue(batch, kUnstuff, coded, set_.unstuff_threads, {slots, row_buffers, status});
      const uint64_t cleared = g.coefficients / 16, clears = blocks_for(static_cast<int64_t>(cleared), kClearsPerCta);
      if (preparers.empty()) {
        if (clears)
          issue(batch, kClear, static_cast<uint32_t>(clears), set_.pixel_threads, {memory + g.working, cleared});
      } else {
        preparers.add(kNoRow, clears);
        preparers.launch(batch, launch_of(kPrepare, set_.unstuff_threads,
                                          {slots, row_buffers, status, memory + g.working, cleared}));
      }
      shares.launch(batch, launch_of(kEntropy, set_.entropy_threads,
                                     {slots, row_buffers, status, set_.min_bits, set_.max_rounds}));
      guesses.launch(batch,
                     launch_of(kGuess, set_.guess_threads,
                               {slots, row_buffers, status, set_.subsequences, set_.spread_bits, set_.lead_bits}));
      one_each.launch(batch,
                      launch_of(kSynchronise, set_.spread_threads, {slots, row_buffers, status, set_.max_rounds}));
      writers.launch(batch, launch_of(kWrite, set_.write_threads, {slots, row_buffers, status}));
    }
    blocks.launch(batch, launch_of(kTransform, set_.pixel_threads, {slots, row_buffers, status}));
    pixels.launch(batch, launch_of(kPixels, set_.pixel_threads, {slots, row_buffers, status}));
  }

  Launch launch_of(Which which, uint32_t threads, std::initializer_list<uint64_t> values) const {
    Launch launch;
    launch.function = functions_[which].get();
    launch.block[0] = threads;
    return launch.with(values);
  }
  void issue(Batch& batch, Which which, uint32_t grid, uint32_t threads, std::initializer_list<uint64_t> values) const {
    Launch launch = launch_of(which, threads, values);
    launch.grid[0] = grid;
    batch.launch(launch);
  }

  bool adjust_;
  Format format_;
  int scale_;
  const DType element_type_;
  Functions functions_;
  Settings set_;
  std::shared_ptr<Index> index_;  // null: there is no index
  const bool in_parts_;
  const std::shared_ptr<const FileSource> source_;
};

}  // namespace

std::shared_ptr<const stoker::gpu::Kernel> make_decode(bool adjust_orientation, Format format, Functions functions,
                                                       Settings settings, int scale_log2, std::shared_ptr<Index> index,
                                                       bool in_parts, std::shared_ptr<const FileSource> source) {
  return std::make_shared<Decode>(adjust_orientation, format, std::move(functions), settings, scale_log2,
                                  std::move(index), in_parts, std::move(source));
}

}  // namespace stoker::jpeg::gpu
