// SPDX-License-Identifier: Apache-2.0
#include "run/job_on_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy_view.hpp"
#include "gpu/file_reads.hpp"
#include "plan/plan.hpp"
#include "run/sizes.hpp"

namespace stoker::gpu {

namespace {

// Prefetch: other cores wrote these cache lines, and fetching them one after the other would take longer than
// everything else that is done with them.
void fetch_ahead(const uint8_t* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(memory + at);
}

}  // namespace

class JobOnDevice::StepBatch : public Batch {
 public:
  StepBatch(JobOnDevice& job, OnStep& step) : job_(job), step_(step) {}
  int64_t rows() const override { return step_.entries(job_.rows_); }
  bool active(int64_t row) const override { return step_.described(row); }
  const uint8_t* slots() const override { return step_.slots; }
  uint8_t* slot(int64_t row) override { return step_.slots + step_.slot_bytes * static_cast<size_t>(row); }
  Address device_slots() const override { return step_.device_slots; }
  Address scratch(size_t bytes) override { return job_.work_->take(bytes).device; }
  uint8_t* upload(size_t bytes, Address* device) override {
    const Arena::Piece piece = job_.upload_.take(bytes);
    *device = piece.device;
    return piece.host;
  }
  Address report(size_t bytes) override {
    if (step_.report_bytes == 0) {
      const Arena::Piece piece = job_.upload_.take(bytes);  // the copy to the device zeroes it
      std::memset(piece.host, 0, bytes);
      step_.report = piece.device;
      step_.report_host = piece.host;
      step_.report_bytes = bytes;
    }
    return step_.report;
  }
  void launch(const Launch& launch) override { job_.launches_.push_back(launch); }
  void call(std::function<uintptr_t(Fork&)> work) override {
    job_.calls_.push_back({job_.launches_.size(), std::move(work), nullptr});
  }
  void call_ahead(std::function<uintptr_t()> work) override {
    job_.calls_.push_back({job_.launches_.size(), nullptr, std::move(work)});
  }

 private:
  JobOnDevice& job_;
  OnStep& step_;
};

JobOnDevice::JobOnDevice(const DeviceResources& resources, const Plan& plan)
    : resources_(resources),
      inputs_(resources.device, resources.pinned_pool, resources.backing_pool, resources.input_mark),
      upload_(resources.device, resources.quota, resources.upload_mark, resources.backing_pool),
      steps_(plan.steps.size()),
      constants_(plan.values.size()),
      counted_by_(plan.values.size(), -1) {
  for (size_t s = 0; s < steps_.size(); ++s)
    if (plan.steps[s].on_device) {
      steps_[s].kernel = plan.steps[s].on_device;
      steps_[s].slot_bytes = plan.steps[s].on_device->slot_bytes();
      steps_[s].by_frame = plan.steps[s].frames >= 0;
      const int32_t count = plan.steps[s].count;
      steps_[s].counts_rows = count >= 0;
      if (count >= 0)
        counted_by_[static_cast<size_t>(plan.steps[s].out[static_cast<size_t>(count)])] = static_cast<int32_t>(s);
    }
}

JobOnDevice::~JobOnDevice() {
  drain();
  drop_ticks();
}  // the device must not use memory that is released

void JobOnDevice::drain() noexcept {
  try {
    await();
  } catch (const std::exception&) {
    // The device has failed as a whole, so it does no work any more.
  }
  abandon_rows();
}

void JobOnDevice::abandon_rows() noexcept {
  if (std::exchange(judged_, true)) return;
  for (const OnStep& step : steps_) {
    if (!step.kernel || !step.opened || step.slot_bytes == 0 || (!step.by_frame && !step.slots)) continue;
    for (int64_t row = 0; row < rows_; ++row) {
      if (flag_of(row) >= step.active.size() || !step.active[flag_of(row)]) continue;
      const uint8_t* const slot = step.by_frame ? step.frames[static_cast<size_t>(row)].data()
                                                : step.slots + step.slot_bytes * static_cast<size_t>(row);
      const size_t bytes = step.by_frame ? step.frames[static_cast<size_t>(row)].size() : step.slot_bytes;
      for (size_t at = 0; at < bytes; at += step.slot_bytes) step.kernel->abandon(slot + at);
    }
  }
}

void JobOnDevice::deliver(const View& row, Address to) {
  const size_t bytes = static_cast<size_t>(row.elements() * size_of(row.dtype));
  if (bytes == 0) return;
  device_address(row.data);  // marks it to be sent
  std::lock_guard<std::mutex> hold(delivering_);
  deliveries_.push_back({row.data, to, bytes});
}

Address JobOnDevice::read_to_device(int descriptor, uint64_t offset, size_t bytes, IdleThreads* others) {
  constexpr size_t kPage = 4096;  // cuFile reads directly to addresses that are aligned
  Device& device = *resources_.device;
  FileReads* const reads = device.separate_allocations || is_held_ ? nullptr : resources_.file_reads.get();
  if (!reads || bytes < FileReads::kLeastBytes) return 0;
  device.enter();
  Address to = 0;
  try {
    Arena* files = nullptr;
    {
      std::lock_guard<std::mutex> hold(reading_files_);
      if (!files_) files_ = resources_.file_arenas->take();
      files = files_.get();
    }
    to = files->take((bytes + kPage - 1) / kPage * kPage).device;
  } catch (const std::bad_alloc&) { return 0; }
  const FileReads::Outcome outcome = reads->read(descriptor, offset, to, bytes, others);
  try {
    std::lock_guard<std::mutex> hold(reading_files_);
    copied_.insert(copied_.end(), outcome.copied.begin(), outcome.copied.end());
  } catch (const std::bad_alloc&) {
    for (const Event event : outcome.copied) wait_and_forget(device, event);
    throw;
  }
  return outcome.is_complete ? to : 0;
}

void JobOnDevice::await_files(WorkStream work_stream) {
  for (; !copied_.empty(); copied_.pop_back()) {
    resources_.device->await_on(work_stream, copied_.back());
    resources_.device->forget(copied_.back());
  }
}

// Copies that no work waits for still write to memory that will be reused.
void JobOnDevice::drop_files() noexcept {
  for (; !copied_.empty(); copied_.pop_back()) {
    try {
      wait_and_forget(*resources_.device, copied_.back());
    } catch (const std::exception&) {
      // The device has failed as a whole, so it copies nothing any more.
    }
  }
  if (files_) resources_.file_arenas->release(std::move(files_));
}

void JobOnDevice::follow(uintptr_t stream) {
  if (std::find(followed_.begin(), followed_.end(), stream) == followed_.end()) followed_.push_back(stream);
}

// A copy that is issued while other threads read files takes 10 us with two threads, and 50 to 190 us with 16.
void JobOnDevice::reading(int threads, bool held) {
  constexpr int kFew = 4;
  is_held_ = held;
  if (!resources_.quota->is_unlimited()) inputs_.block_policy = BlockPolicy::Small;
  else inputs_.block_policy = threads <= kFew && !held ? BlockPolicy::SendWhenFull : BlockPolicy::Single;
}

void JobOnDevice::begin(int64_t rows) {
  resources_.device->enter();
  await();
  abandon_rows();
  drop_ticks();  // of a batch that was not issued completely
  for (OnStep& step : steps_) step.opened = false;
  rows_ = rows;
  inputs_.reset();
  upload_.reset();
  finish();
  planned_.clear();
  launches_.clear();
  ends_.clear();
  redo_.clear();
  deliveries_.clear();
  calls_.clear();
  called_.clear();
}

void JobOnDevice::finish() {
  std::fill(constants_.begin(), constants_.end(), Constant{});
  inputs_.finish();
  drop_files();
  upload_.release_device_memory();
  if (work_) resources_.work_arenas->release(std::move(work_));
}

void JobOnDevice::open(const std::vector<int32_t>& steps) {
  if (!work_) work_ = resources_.work_arenas->take();
  judged_ = false;
  for (const int32_t s : steps) {  // in a loop of its own, so that all steps are consistent if there is no memory
    OnStep& step = on(s);
    step.active.assign(flag_of(rows_), 0);
    step.report_bytes = 0;
    step.report_host = nullptr;
    step.slots = nullptr;
    step.counts_host = nullptr;
    step.frames.resize(step.by_frame ? static_cast<size_t>(rows_) : 0);
    step.opened = true;
  }
  for (const int32_t s : steps) {
    OnStep& step = on(s);
    if (step.slot_bytes == 0 || step.by_frame) continue;
    const size_t bytes = step.slot_bytes * static_cast<size_t>(rows_);
    const Arena::Piece piece = upload_.take(bytes);
    step.slots = piece.host;
    step.device_slots = piece.device;
    if (step.counts_rows) {
      const Arena::Piece counts = upload_.take(static_cast<size_t>(rows_) * sizeof(int32_t));
      step.counts_host = reinterpret_cast<int32_t*>(counts.host);
      step.counts = counts.device;
      std::fill_n(step.counts_host, rows_, kNoCount);  // also on the device, by the copy there
    }
  }
}

Address JobOnDevice::count_address(int32_t value, int64_t row) const {
  const OnStep& step = steps_.at(static_cast<size_t>(counted_by_.at(static_cast<size_t>(value))));
  return step.counts + static_cast<uint64_t>(row) * sizeof(int32_t);
}

uint8_t* JobOnDevice::slot(int32_t step, int64_t row) {
  OnStep& s = on(step);
  if (s.by_frame || s.slot_bytes == 0) return s.slots;
  uint8_t* slot = s.slots + s.slot_bytes * static_cast<size_t>(row);
  std::memset(slot, 0, s.slot_bytes);
  return slot;
}

uint8_t* JobOnDevice::frame_slots(int32_t step, int64_t row, int64_t frames) {
  OnStep& s = on(step);
  std::vector<uint8_t>& own = s.frames[static_cast<size_t>(row)];
  own.assign(s.slot_bytes * static_cast<size_t>(frames), 0);
  return own.data();
}

// For the kernel, every frame is a row of the batch.
void JobOnDevice::join_frames(OnStep& step) {
  step.row_of.clear();
  size_t bytes = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    if (!step.active[flag_of(row)]) continue;
    const size_t own = step.frames[static_cast<size_t>(row)].size();
    step.row_of.insert(step.row_of.end(), own / step.slot_bytes, row);
    bytes += own;
  }
  if (bytes == 0) return;
  const Arena::Piece piece = upload_.take(bytes);
  step.slots = piece.host;
  step.device_slots = piece.device;
  uint8_t* to = piece.host;
  for (int64_t row = 0; row < rows_; ++row) {
    if (!step.active[flag_of(row)]) continue;
    const std::vector<uint8_t>& own = step.frames[static_cast<size_t>(row)];
    std::memcpy(to, own.data(), own.size());
    to += own.size();
  }
}

// Clear the descriptors of rows without one.
void JobOnDevice::clear_others(OnStep& step) {
  for (int64_t row = 0; row < rows_ && step.slots; ++row)
    if (!step.described(row)) std::memset(step.slots + step.slot_bytes * static_cast<size_t>(row), 0, step.slot_bytes);
}

Address JobOnDevice::device_address(const uint8_t* host) const {
  const Address of_file = inputs_.device_address(host);
  return of_file ? of_file : upload_.device_address(host);
}

View JobOnDevice::on_device(const View& view) {
  if (view.device) return view;
  View moved = view;
  moved.device = true;
  Address address = device_address(view.data);
  if (!address) {
    const Arena::Piece piece = upload_.take(static_cast<size_t>(view.elements() * size_of(view.dtype)));
    copy_contiguous(view, piece.host);
    moved.set_contiguous_strides();
    address = piece.device;
  }
  moved.data = reinterpret_cast<uint8_t*>(address);
  return moved;
}

View JobOnDevice::constant_on_device(int32_t value, const View& view) {
  std::lock_guard<std::mutex> hold(copying_constants_);
  Constant& constant = constants_[static_cast<size_t>(value)];
  if (constant.host != view.data || !constant.view.has_extents_of(view)) constant = {view.data, on_device(view)};
  return constant.view;
}

void JobOnDevice::plan_launches(const Plan& plan, const std::vector<int32_t>& steps) {
  for (const int32_t s : steps) {
    const auto* kernel = plan.steps[static_cast<size_t>(s)].on_device;
    if (!kernel) continue;
    OnStep& step = on(s);
    if (step.by_frame) join_frames(step);
    else clear_others(step);
    StepBatch batch(*this, step);
    // If no row has anything to do, there may be no slots: `open` found no memory for them.
    if (step.any_described(rows_)) {
      fetch_ahead(step.slots, step.slot_bytes * static_cast<size_t>(step.entries(rows_)));
      kernel->launch(batch);
    }
    planned_.push_back(s);
    ends_.push_back({launches_.size(), calls_.size()});
  }
}

void JobOnDevice::call_ahead() {
  if (calls_.empty()) return;
  resources_.device->enter();
  try {
    for (LibraryCall& call : calls_) {
      if (!call.ahead) continue;
      call.stream = call.ahead();
      called_.push_back(call.stream);
    }
  } catch (const std::exception&) {
    finish_calls();
    throw;
  }
}

// The stream is recorded first: it may get work before the fork or before the call throws, and must be waited for in
// any case.
class JobOnDevice::ForkAt : public Fork {
 public:
  ForkAt(JobOnDevice& job, WorkStream work_stream) : job_(job), work_stream_(work_stream) {}
  uintptr_t stream() const override { return job_.resources_.device->stream_of(work_stream_); }
  void to(uintptr_t other) override {
    job_.called_.push_back(other);
    job_.resources_.device->fork(work_stream_, other);
  }

 private:
  JobOnDevice& job_;
  const WorkStream work_stream_;
};

void JobOnDevice::issue_call(WorkStream work_stream, LibraryCall& call) {
  Device& device = *resources_.device;
  if (call.work) {
    ForkAt fork(*this, work_stream);
    call.stream = call.work(fork);
  }
  if (call.stream != device.stream_of(work_stream)) device.follow(work_stream, call.stream);
}

void JobOnDevice::finish_calls() noexcept {
  for (const uintptr_t stream : called_) {
    try {
      resources_.device->finish(stream);
    } catch (const std::exception&) {
      // The device has failed as a whole, so it does no work any more.
    }
  }
  called_.clear();
}

void JobOnDevice::issue() {
  Device& device = *resources_.device;
  device.enter();
  work_stream_ = device.next_work_stream();
  issue_on(work_stream_);
}

void JobOnDevice::abandon() noexcept {
  try {
    resources_.device->enter();
  } catch (const std::exception&) {
    // The device has failed as a whole, so it does no work any more.
  }
  finish_calls();
  resources_.device->drain(work_stream_);
  abandon_rows();
}

void JobOnDevice::issue_on(WorkStream work_stream) {
  Device& device = *resources_.device;
  for (const uintptr_t stream : followed_) device.follow(work_stream, stream);
  await_files(work_stream);
  inputs_.send(work_stream);
  if (calls_.empty()) inputs_.release_host_memory();  // libraries read files on streams of their own
  upload_.send(work_stream);
  for (const Delivery& d : deliveries_) device.move(work_stream, d.to, device_address(d.from), d.bytes);
  deliveries_.clear();
  // Decoding of files leaves most of the device idle, so batches with files and batches of libraries overlap whole: in
  // order, they are 18 % slower with five prefetched batches (docs/internals/gpu.md).
  const bool in_order = calls_.empty() && !inputs_.has_files() && !files_ && launches_.size() > 1;
  if (in_order) resources_.order->begin(work_stream);
  const bool measured = resources_.times->wanted();
  if (measured) ticks_.push_back(device.tick(work_stream));
  size_t launch = 0, call = 0;
  for (const End& end : ends_) {
    while (launch < end.launches || call < end.calls) {
      if (call < end.calls && calls_[call].before == launch) issue_call(work_stream, calls_[call++]);
      else {
        if (in_order && launch + 1 == launches_.size()) resources_.order->ends(work_stream);
        device.launch(work_stream, launches_[launch++]);
      }
    }
    if (measured) ticks_.push_back(device.tick(work_stream));
  }
  launches_.clear();
  calls_.clear();
  ends_.clear();
  for (const int32_t s : planned_) {
    const OnStep& step = on(s);
    if (step.report_bytes) device.copy_out(work_stream, step.report_host, step.report, step.report_bytes);
    if (step.counts_host)
      device.copy_out(work_stream, reinterpret_cast<uint8_t*>(step.counts_host), step.counts,
                      static_cast<size_t>(rows_) * sizeof(int32_t));
  }
  finished_ = device.record(work_stream);
  issued_ = true;
  called_.clear();
}

bool JobOnDevice::passed() noexcept {
  if (!issued_) return true;
  try {
    resources_.device->enter();
    return resources_.device->passed(finished_);
  } catch (const std::exception&) {
    return true;  // the device has failed as a whole; `await` says so
  }
}

void JobOnDevice::await() {
  if (!issued_) return;
  issued_ = false;
  Device& device = *resources_.device;
  try {
    device.enter();
  } catch (const std::exception&) {
    device.forget(finished_);  // the device has failed as a whole, so nothing waits for its work
    throw;
  }
  try {
    wait_and_forget(device, finished_);
  } catch (const std::exception&) {
    device.drain(work_stream_);
    throw;
  }
  if (!ticks_.empty()) read_ticks();
}

void JobOnDevice::read_ticks() {
  std::vector<double> ns;
  for (size_t i = 1; i < ticks_.size(); ++i) ns.push_back(resources_.device->elapsed_ns(ticks_[i - 1], ticks_[i]));
  resources_.times->add(planned_, ns, rows_);
  drop_ticks();
}

void JobOnDevice::drop_ticks() noexcept {
  for (const Event tick : ticks_) resources_.device->forget_tick(tick);
  ticks_.clear();
}

std::vector<JobOnDevice::Finding> JobOnDevice::inspect(const Plan& plan) {
  std::vector<Finding> found;
  for (const int32_t s : planned_) {
    const OnStep& step = on(s);
    const Kernel* kernel = plan.steps[static_cast<size_t>(s)].on_device;
    int64_t failed = -1;  // one error per row, from the first failed frame
    for (int64_t entry = 0; step.report_bytes && entry < step.entries(rows_); ++entry) {
      if (!step.described(entry)) continue;
      const int64_t row = step.by_frame ? step.row_of[static_cast<size_t>(entry)] : entry;
      if (row == failed) continue;
      Finding finding{row, s, Verdict::Good, {}};
      const uint8_t* slot = step.slots + step.slot_bytes * static_cast<size_t>(entry);
      finding.verdict = kernel->judge(step.report_host, entry, slot, &finding.error);
      if (finding.verdict == Verdict::Good) continue;
      failed = row;
      if (finding.verdict == Verdict::Redo && redone(row)) {
        finding.verdict = Verdict::Error;
        finding.error = "the device could not make this row, and the CPU left it to the device again";
      }
      found.push_back(std::move(finding));
    }
  }
  for (const Finding& finding : found) {
    if (finding.verdict != Verdict::Redo) continue;
    redo_.resize(static_cast<size_t>(rows_));
    redo_[static_cast<size_t>(finding.row)] = 1;
  }
  planned_.clear();
  judged_ = true;
  return found;
}

}  // namespace stoker::gpu
