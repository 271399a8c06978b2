// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/nvjpeg_decode.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/whole.hpp"
#include "gpu_kernels/row_blocks.hpp"
#include "jpeg/orientation.hpp"
#include "run/job.hpp"
#include "shared/nvjpeg_row.cuh"

namespace stoker::nvjpeg {
namespace {

using gpu::Address;
using gpu::Batch;
using gpu::Launch;
using gpu::Verdict;
using jpeg::Extent;
using jpeg::Format;
using jpeg::Info;
using jpeg::Model;
using jpeg::Placement;
using jpeg::Turn;
using jpeg::Window;

enum Which : size_t { kPlace, kCompare };
constexpr int64_t kMaxPixels = int64_t{1} << 26;
constexpr uint64_t kComparedEvery = 64;
constexpr size_t kEndMarkerWithin = 64;  // bytes from a file's end

// Evenly spread for any keys, and independent of the CPU's share (the finalizer of splitmix64).
uint64_t mixed(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

// Return whether the data end early. The engines do not report damage.
bool has_end_marker(const uint8_t* data, size_t size) {
  for (size_t i = size; i >= 2 && i + kEndMarkerWithin > size; --i)
    if (data[i - 2] == 0xFF && data[i - 1] == 0xD9) return true;
  return false;
}

// Return why a file is not for the engines; null: their library decides.
const char* refusal(const Info& info, Format format) {
  if (format != Format::RGB && format != Format::BGR && format != Format::ANY)
    return "an output of another colour model";
  if (info.progressive) return "progressive";
  if (info.components != 3 || info.model != Model::YCbCr) return "other colours than YCbCr";
  if (info.scan.count != info.components) return "several scans";
  if (int64_t{info.width} * info.height > kMaxPixels) return "more than 64 megapixels";
  return nullptr;
}

Row& row_in(uint8_t* slot) { return *reinterpret_cast<Row*>(slot); }

uint32_t blocks_of(const Row& row) { return (row.width * row.height + kPixelsPerCta - 1) / kPixelsPerCta; }

}  // namespace

// The batch as the exact decoder sees it: only the rows that it decodes. Its descriptors are stored after those of the
// engines and are passed on contiguously.
class Decode::ExactRows final : public Batch {
 public:
  // `more` is the size of the engines' report, which follows the exact decoder's.
  ExactRows(Batch& whole, size_t slot_bytes, size_t more) : whole_(whole), slot_bytes_(slot_bytes), more_(more) {
    slots_ = whole.upload(slot_bytes * static_cast<size_t>(whole.rows()), &device_slots_);
    for (int64_t r = 0; r < whole.rows(); ++r) {
      any_ |= active(r);
      std::memcpy(slots_ + slot_bytes * static_cast<size_t>(r), whole.slot(r) + sizeof(Row), slot_bytes);
    }
  }
  bool any() const { return any_; }
  size_t reported() const { return reported_; }

  int64_t rows() const override { return whole_.rows(); }
  bool active(int64_t row) const override {
    const Row& r = row_in(whole_.slot(row));
    return whole_.active(row) && (r.maker == Maker::Exact || r.exact);
  }
  const uint8_t* slots() const override { return slots_; }
  uint8_t* slot(int64_t row) override { return slots_ + slot_bytes_ * static_cast<size_t>(row); }
  Address device_slots() const override { return device_slots_; }
  Address scratch(size_t bytes) override { return whole_.scratch(bytes); }
  uint8_t* upload(size_t bytes, Address* device) override { return whole_.upload(bytes, device); }
  Address report(size_t bytes) override {
    reported_ = gpu::aligned(bytes);
    return whole_.report(reported_ + more_);
  }
  void launch(const Launch& launch) override { whole_.launch(launch); }
  void call(std::function<uintptr_t(gpu::Fork&)> work) override { whole_.call(std::move(work)); }
  void call_ahead(std::function<uintptr_t()> work) override { whole_.call_ahead(std::move(work)); }

 private:
  Batch& whole_;
  uint8_t* slots_;
  Address device_slots_ = 0;
  const size_t slot_bytes_, more_;
  size_t reported_ = 0;
  bool any_ = false;
};

Decode::Decode(std::shared_ptr<gpu::GpuWithCpuFallback> exact, std::shared_ptr<Engines> engines, Functions functions,
               double part, bool adjust_orientation, Format format)
    : exact_(std::move(exact)),
      engines_(std::move(engines)),
      functions_(std::move(functions)),
      part_(part),
      adjust_(adjust_orientation),
      format_(format) {}

size_t Decode::slot_bytes() const { return sizeof(Row) + exact_->slot_bytes(); }

Outcome Decode::run(const Call& c) const {
  const uint64_t key = c.job.keys[static_cast<size_t>(c.row)];
  if (c.on_host || static_cast<double>(mixed(key) >> 11) * 0x1p-53 >= part_) return run_exact(c);
  const View& file = *c.in[0];
  const uint8_t* const data = c.host_in[0]->data;
  const size_t size = static_cast<size_t>(file.shape[0]);
  Info info;
  const char* reason = nullptr;
  if (file.rank != 1 || file.stride[0] != 1 || size < 3 || !jpeg::parse(data, size, info))
    reason = "not a JPEG file of a usual kind";
  else if (!has_end_marker(data, size)) reason = "no end marker";
  else reason = refusal(info, format_);
  if (!reason && !engines_->support(data, size)) reason = "nvJPEG says that the engines do not decode it";
  if (!reason && !describe(c, info)) reason = "a window that leaves the image";
  if (reason) {
    count(reason);
    return run_exact(c);
  }
  if (mixed(key + 1) % kComparedEvery == 0) compare_too(c, info);
  return Outcome::Ok;
}

Outcome Decode::run_exact(const Call& c) const {
  Call exact_call = c;
  exact_call.slot = c.slot + sizeof(Row);
  const Outcome outcome = exact_->run(exact_call);
  row_in(c.slot).maker = Maker::Exact;
  return outcome;
}

bool Decode::describe(const Call& c, const Info& info) const {
  const View out = *c.out[0];
  const Turn turn = jpeg::turn_of(adjust_ ? info.orientation : 1);
  const Extent whole{info.width, info.height};
  const Window window = jpeg::stored_window(whole, turn, position_of(c.params[0]), position_of(c.params[1]),
                                            size_within(out.shape[0]), size_within(out.shape[1]));
  if (!jpeg::is_inside(window, whole)) return false;
  Row row = {};
  row.pitch = 3 * static_cast<uint32_t>(whole.width);
  row.picture = c.memory->allocate_device(size_t{row.pitch} * static_cast<size_t>(whole.height));
  if (c.may_show && out.dtype == DType::U8) {  // later steps read the whole picture
    auto* const picture = reinterpret_cast<uint8_t*>(row.picture);
    *c.out[0] = jpeg::shown(picture, row.pitch, 3, window, turn, out);
    row.out =
        row.picture + uint64_t{row.pitch} * static_cast<uint64_t>(window.y0) + 3 * static_cast<uint64_t>(window.x0);
    row.step_y = row.pitch;
    row.step_x = 3;
  } else {
    const Placement place = jpeg::placement(window, turn, out);
    row.out = reinterpret_cast<Address>(out.data) + static_cast<uint64_t>(place.offset);
    row.step_y = place.step_y;
    row.step_x = place.step_x;
    row.placed = 1;
  }
  row.file = reinterpret_cast<uint64_t>(c.host_in[0]->data);
  row.file_bytes = static_cast<uint64_t>(c.in[0]->shape[0]);
  row.x0 = static_cast<uint32_t>(window.x0);
  row.y0 = static_cast<uint32_t>(window.y0);
  row.width = static_cast<uint32_t>(window.x1 - window.x0);
  row.height = static_cast<uint32_t>(window.y1 - window.y0);
  row.maker = Maker::Engine;
  row_in(c.slot) = row;
  return true;
}

// The exact decoder decodes the same window to other memory. If it refuses, the row is not compared.
void Decode::compare_too(const Call& c, const Info& info) const {
  View exact = *c.out[0];
  exact.set_contiguous_strides();
  const Address memory =
      c.memory->allocate_device(static_cast<size_t>(std::max<int64_t>(exact.elements() * size_of(exact.dtype), 1)));
  exact.data = reinterpret_cast<uint8_t*>(memory);
  View* out[] = {&exact};
  std::string error;
  Call exact_call = c;
  exact_call.slot = c.slot + sizeof(Row);
  exact_call.out = out;
  exact_call.error = &error;
  if (exact_->on_gpu().run(exact_call) != Outcome::Ok) return;
  Row& row = row_in(c.slot);
  const Turn turn = jpeg::turn_of(adjust_ ? info.orientation : 1);
  const Window window{0, 0, static_cast<int32_t>(row.width), static_cast<int32_t>(row.height)};
  const Placement place = jpeg::placement(window, turn, exact);
  row.exact = memory + static_cast<uint64_t>(place.offset);
  row.exact_step_y = place.step_y;
  row.exact_step_x = place.step_x;
}

void Decode::launch(Batch& batch) const {
  uint32_t differences = 0;
  for (int64_t r = 0; r < batch.rows(); ++r) {
    Row& row = row_in(batch.slot(r));
    if (!batch.active(r) || !row.exact) continue;
    row.first_difference = differences;
    row.differences = blocks_of(row);
    differences += row.differences;
  }
  // Also without differences, so that the rows are judged.
  const size_t more = sizeof(Difference) * (size_t{differences} + 1);
  ExactRows exact(batch, exact_->slot_bytes(), more);
  if (exact.any()) exact_->launch(exact);
  const size_t offset = exact.reported();
  if (!offset) batch.report(more);
  launch_engines(batch, offset);
}

void Decode::launch_engines(Batch& batch, size_t report_offset) const {
  std::vector<Picture> pictures;
  std::vector<Row*> rows;
  gpu::RowBlocks placed, compared;
  for (int64_t r = 0; r < batch.rows(); ++r) {
    Row& row = row_in(batch.slot(r));
    if (!batch.active(r) || row.maker != Maker::Engine) continue;
    row.report = static_cast<uint32_t>(report_offset);
    rows.push_back(&row);
    pictures.push_back({reinterpret_cast<const uint8_t*>(row.file), row.file_bytes, row.picture, row.pitch});
    if (row.placed) placed.add(static_cast<uint32_t>(r), blocks_of(row));
    if (row.exact) compared.add(static_cast<uint32_t>(r), blocks_of(row));
  }
  if (rows.empty()) return;
  batch.call_ahead([engines = engines_, bgr = format_ == Format::BGR, pictures = std::move(pictures), rows] {
    const Engines::Issued issued = engines->decode(pictures, bgr);
    for (Row* row : rows) row->refused = static_cast<uint32_t>(issued.refusal);
    return issued.stream;
  });
  const auto issue = [&](Which which, const gpu::RowBlocks& blocks, Address differences) {
    Launch launch;
    launch.function = functions_[which].get();
    launch.block[0] = kThreads;
    launch.with({batch.device_slots(), slot_bytes()});
    if (which == kCompare) launch.argument[launch.arguments++] = differences;
    blocks.launch(batch, launch);
  };
  issue(kPlace, placed, 0);
  issue(kCompare, compared, batch.report(0) + report_offset);
}

Verdict Decode::judge(const uint8_t* report, int64_t index, const uint8_t* slot, std::string* error) const {
  const Row& row = *reinterpret_cast<const Row*>(slot);
  if (row.maker == Maker::Exact) return exact_->judge(report, index, slot + sizeof(Row), error);
  if (row.refused) {
    abandon(slot);
    count("in a batch that nvJPEG refused (status " + std::to_string(row.refused) + ")");
    return Verdict::Redo;
  }
  rows_.fetch_add(1, std::memory_order_relaxed);
  if (!row.exact || exact_->on_gpu().judge(report, index, slot + sizeof(Row), error) != Verdict::Good)
    return Verdict::Good;
  const auto* const found = reinterpret_cast<const Difference*>(report + row.report) + row.first_difference;
  std::lock_guard<std::mutex> hold(mutex_);
  ++error_.rows;
  error_.values += int64_t{3} * row.width * row.height;
  for (uint32_t i = 0; i < row.differences; ++i) {
    error_.sum += found[i].sum;
    error_.most = std::max(error_.most, found[i].most);
  }
  return Verdict::Good;
}

void Decode::abandon(const uint8_t* slot) const noexcept {
  const Row& row = *reinterpret_cast<const Row*>(slot);
  if (row.maker == Maker::Exact || row.exact) exact_->abandon(slot + sizeof(Row));
}

void Decode::count(const std::string& reason) const {
  std::lock_guard<std::mutex> hold(mutex_);
  ++reasons_[reason];
}

std::map<std::string, int64_t> Decode::reasons() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return reasons_;
}

Error Decode::error() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return error_;
}

}  // namespace stoker::nvjpeg
