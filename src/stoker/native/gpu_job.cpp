// SPDX-License-Identifier: Apache-2.0
#include "gpu_job.hpp"

#include <algorithm>
#include <cstring>

#include "engine.hpp"

namespace stoker::gpu {

namespace {

// Copies any view into contiguous memory of the same type.
void copy_contiguous(const View& from, uint8_t* to) {
  const size_t item = static_cast<size_t>(size_of(from.dtype));
  if (from.contiguous()) {
    std::memcpy(to, from.data, item * static_cast<size_t>(from.elements()));
    return;
  }
  int64_t at[kMaxRank] = {};
  const uint8_t* p = from.data;
  for (int64_t left = from.elements(); left > 0; --left, to += item) {
    std::memcpy(to, p, item);
    for (int d = from.rank - 1; d >= 0; --d) {
      p += from.stride[d];
      if (++at[d] < from.shape[d]) break;
      p -= from.stride[d] * from.shape[d];
      at[d] = 0;
    }
  }
}

// Other cores have written it: one after the other, such lines take longer to get than all else that is done with them.
void fetch_ahead(const uint8_t* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(memory + at);
}

}  // namespace

void StepTimes::add(const std::vector<int32_t>& steps, const std::vector<double>& ns, int64_t rows) {
  std::lock_guard<std::mutex> hold(mutex_);
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t step = static_cast<size_t>(steps[i]);
    if (ns_.size() <= step) ns_.resize(step + 1);
    ns_[step] += ns[i];
  }
  rows_ += rows;
}

std::pair<int64_t, std::vector<double>> StepTimes::total(size_t steps) const {
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<double> ns = ns_;
  ns.resize(steps);
  return {rows_, std::move(ns)};
}

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
      const Arena::Piece piece = job_.upload_.take(bytes);  // zeroed by the copy to the device
      std::memset(piece.host, 0, bytes);
      step_.report = piece.device;
      step_.report_host = piece.host;
      step_.report_bytes = bytes;
    }
    return step_.report;
  }
  void launch(const Launch& launch) override { job_.launches_.push_back(launch); }
  void call(std::function<uintptr_t()> work) override { job_.calls_.push_back(std::move(work)); }

 private:
  JobOnDevice& job_;
  OnStep& step_;
};

JobOnDevice::JobOnDevice(const Place& place, const Plan& plan)
    : place_(place), inputs_(place.device, place.locked, place.behind, place.inputs),
      upload_(place.device, place.account, place.uploads, place.behind),
      steps_(plan.steps.size()) {
  for (size_t s = 0; s < steps_.size(); ++s)
    if (plan.steps[s].on_device) {
      steps_[s].slot_bytes = plan.steps[s].on_device->slot_bytes();
      steps_[s].by_frame = plan.steps[s].frames >= 0;
    }
}

JobOnDevice::~JobOnDevice() {
  rest();
  drop_ticks();
}  // the device must not work in memory that goes away

void JobOnDevice::rest() noexcept {
  try {
    await();
  } catch (const std::exception&) {
    // It has failed as a whole: it works no more.
  }
}

void JobOnDevice::deliver(const View& made, Address to) {
  const size_t bytes = static_cast<size_t>(made.elements() * size_of(made.dtype));
  if (bytes == 0) return;
  behind(made.data);  // so that it is sent
  std::lock_guard<std::mutex> hold(delivering_);
  deliveries_.push_back({made.data, to, bytes});
}

void JobOnDevice::follow(uintptr_t stream) {
  if (std::find(followed_.begin(), followed_.end(), stream) == followed_.end()) followed_.push_back(stream);
}

// A copy that is issued while others are reading takes 10 us of two threads, and 50 to 190 of 16.
void JobOnDevice::reading(int threads, bool held) {
  constexpr int kFew = 4;
  if (!place_.account->unlimited()) inputs_.blocks = Blocks::Small;
  else inputs_.blocks = threads <= kFew && !held ? Blocks::Sent : Blocks::One;
}

void JobOnDevice::begin(int64_t rows) {
  await();
  drop_ticks();  // of a batch that was not issued whole
  rows_ = rows;
  inputs_.reset();
  upload_.reset();
  finish();
  planned_.clear();
  launches_.clear();
  ends_.clear();
  redo_.clear();
  followed_.clear();
  deliveries_.clear();
  calls_.clear();
  called_.clear();
}

void JobOnDevice::finish() {
  inputs_.finish();
  upload_.leave_device();
  if (work_) place_.works->give(std::move(work_));
}

void JobOnDevice::open(const std::vector<int32_t>& steps) {
  if (!work_) work_ = place_.works->take();
  for (const int32_t s : steps) {  // first, so that all steps are as they must be if there is no memory
    OnStep& step = on(s);
    step.active.assign(flag_of(rows_), 0);
    step.report_bytes = 0;
    step.report_host = nullptr;
    step.slots = nullptr;
    step.frames.resize(step.by_frame ? static_cast<size_t>(rows_) : 0);
  }
  for (const int32_t s : steps) {
    OnStep& step = on(s);
    if (step.slot_bytes == 0 || step.by_frame) continue;
    const size_t bytes = step.slot_bytes * static_cast<size_t>(rows_);
    const Arena::Piece piece = upload_.take(bytes);
    step.slots = piece.host;
    step.device_slots = piece.device;
  }
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

// To the kernel, every frame is a row of the batch.
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

// Rows that have not described themselves.
void JobOnDevice::clear_others(OnStep& step) {
  for (int64_t row = 0; row < rows_ && step.slots; ++row)
    if (!step.described(row)) std::memset(step.slots + step.slot_bytes * static_cast<size_t>(row), 0, step.slot_bytes);
}

Address JobOnDevice::behind(const uint8_t* host) const {
  const Address of_file = inputs_.behind(host);
  return of_file ? of_file : upload_.behind(host);
}

View JobOnDevice::on_device(const View& view) {
  if (view.device) return view;
  View moved = view;
  moved.device = true;
  Address address = behind(view.data);
  if (!address) {
    const Arena::Piece piece = upload_.take(static_cast<size_t>(view.elements() * size_of(view.dtype)));
    copy_contiguous(view, piece.host);
    moved.set_contiguous_strides();
    address = piece.device;
  }
  moved.data = reinterpret_cast<uint8_t*>(address);
  return moved;
}

void JobOnDevice::plan_launches(const Plan& plan, const std::vector<int32_t>& steps) {
  for (const int32_t s : steps) {
    const auto* kernel = plan.steps[static_cast<size_t>(s)].on_device;
    if (!kernel) continue;
    OnStep& step = on(s);
    if (step.by_frame) join_frames(step);
    else clear_others(step);
    StepBatch batch(*this, step);
    // Where no row has anything to do there may be no slots either: `open` found no memory for them.
    if (step.any_described(rows_)) {
      fetch_ahead(step.slots, step.slot_bytes * static_cast<size_t>(step.entries(rows_)));
      kernel->launch(batch);
    }
    planned_.push_back(s);
    ends_.push_back(launches_.size());
  }
}

void JobOnDevice::call_libraries() {
  if (calls_.empty()) return;
  place_.device->enter();
  try {
    for (const auto& call : calls_) called_.push_back(call());
  } catch (const std::exception&) {
    finish_calls();
    throw;
  }
  for (const uintptr_t stream : called_) follow(stream);
  calls_.clear();
}

void JobOnDevice::finish_calls() noexcept {
  for (const uintptr_t stream : called_) {
    try {
      place_.device->finish(stream);
    } catch (const std::exception&) {
      // It has failed as a whole: it works no more.
    }
  }
  called_.clear();
}

void JobOnDevice::issue() {
  Device& device = *place_.device;
  device.enter();
  lane_ = device.next_lane();
  issue_on(lane_);
}

void JobOnDevice::abandon() noexcept {
  try {
    place_.device->enter();
  } catch (const std::exception&) {
    // It has failed as a whole: it works no more.
  }
  finish_calls();
  place_.device->drain(lane_);
}

void JobOnDevice::issue_on(Lane lane) {
  Device& device = *place_.device;
  for (const uintptr_t stream : followed_) device.follow(lane, stream);
  inputs_.send(lane);
  if (called_.empty()) inputs_.leave_host();  // libraries read files on streams of their own
  upload_.send(lane);
  for (const Delivery& d : deliveries_) device.move(lane, d.to, behind(d.from), d.bytes);
  deliveries_.clear();
  const bool measured = place_.times->wanted();
  if (measured) ticks_.push_back(device.tick(lane));
  for (size_t i = 0, l = 0; i < ends_.size(); ++i) {
    for (; l < ends_[i]; ++l) device.launch(lane, launches_[l]);
    if (measured) ticks_.push_back(device.tick(lane));
  }
  launches_.clear();
  ends_.clear();
  for (const int32_t s : planned_) {
    const OnStep& step = on(s);
    if (step.report_bytes) device.copy_out(lane, step.report_host, step.report, step.report_bytes);
  }
  finished_ = device.record(lane);
  issued_ = true;
  called_.clear();
}

void JobOnDevice::await() {
  if (!issued_) return;
  issued_ = false;
  place_.device->enter();
  try {
    wait_and_forget(*place_.device, finished_);
  } catch (const std::exception&) {
    place_.device->drain(lane_);
    throw;
  }
  if (!ticks_.empty()) read_ticks();
}

void JobOnDevice::read_ticks() {
  std::vector<double> ns;
  for (size_t i = 1; i < ticks_.size(); ++i) ns.push_back(place_.device->elapsed_ns(ticks_[i - 1], ticks_[i]));
  place_.times->add(planned_, ns, rows_);
  drop_ticks();
}

void JobOnDevice::drop_ticks() noexcept {
  for (const Event tick : ticks_) place_.device->forget_tick(tick);
  ticks_.clear();
}

std::vector<JobOnDevice::Finding> JobOnDevice::inspect(const Plan& plan) {
  std::vector<Finding> found;
  for (const int32_t s : planned_) {
    const OnStep& step = on(s);
    const Kernel* kernel = plan.steps[static_cast<size_t>(s)].on_device;
    int64_t failed = -1;  // one error per row, whichever of its frames came first
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
  return found;
}

}  // namespace stoker::gpu
