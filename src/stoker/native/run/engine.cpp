// SPDX-License-Identifier: Apache-2.0
#include "run/engine.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/float_mode.hpp"
#include "run/spin.hpp"

namespace stoker {

namespace {

constexpr int kMinParked = 8;
constexpr int kAhead = 2;             // finished batches with which a pipeline is ahead
constexpr int kCalm = 4;              // part of the workers that work then
constexpr int64_t kShareNs = 30'000;  // a contended lock costs a microsecond, waking a thread ten

}  // namespace

Engine::Engine(std::shared_ptr<const Plan> plan, int threads, std::unique_ptr<gpu::DeviceResources> resources,
               BatchLimits limits)
    : plan_(std::move(plan)),
      thread_count_(threads),
      resources_(std::move(resources)),
      limits_(limits),
      memory_(*plan_),
      pool_(std::make_shared<BlockPool>(2 * plan_->outputs.size() + 1)),
      device_pool_(resources_ ? std::make_shared<BlockPool>(2 * plan_->outputs.size() + 1, resources_.get()) : nullptr),
      row_ns_(plan_->segments.size()),
      placed_(plan_->places_rows ? plan_->outputs.size() : 0),
      max_parked_(std::max(kMinParked, 2 * threads)) {
  if (!plan_->finished) throw std::invalid_argument("expected a finished plan");
  if (threads < 1) throw std::invalid_argument("expected at least one thread, got " + std::to_string(threads));
  if (!resources_ && plan_->needs_device) throw std::invalid_argument("expected a device for a plan that uses one");
  if (!resources_) return;
  resources_->work_arenas = std::make_shared<gpu::ArenaPool>(resources_->device, resources_->quota);
  resources_->backing_pool = std::make_shared<gpu::DeviceBackingPool>(resources_->device, resources_->quota);
  resources_->file_arenas = std::make_shared<gpu::ArenaPool>(resources_->device, resources_->quota);
  resources_->order = std::make_shared<gpu::BatchOrder>(resources_->device);
  resources_->pinned_pool = std::make_shared<gpu::PinnedPool>(resources_->device);
}

Engine::~Engine() {
  const gpu::Visit here(resources_ ? resources_->device.get() : nullptr, std::nothrow);
  close();
  jobs_.clear();
}

// ---- Segments ----

// Requires the lock, and releases it while memory is allocated.
void Engine::start_segment(Job* job, std::unique_lock<std::mutex>* lock) {
  for (;;) {
    if (job->segment == plan_->segments.size()) {
      if (plan_->places_rows) {
        lock->unlock();
        close_placed(job);
        lock->lock();
      }
      finish(job);
      job_done_.notify_all();
      return;
    }
    if (job->held && plan_->segments[job->segment].kind == SegmentKind::Device) {
      job->waiting = true;
      return;
    }
    lock->unlock();
    open_segment(job);
    lock->lock();
    if (plan_->segments[job->segment].kind == SegmentKind::Python) {
      python_.push_back(PythonWork{job, nullptr});
      python_ready_.notify_all();  // not every thread takes segments
      job_done_.notify_all();      // a waiting consumer may have to start the Python thread
      return;
    }
    job->remaining = job->rows;
    if (job->rows > 0) {
      job->unsent = job->segment == plan_->device_begin && resources_ && job->on_device->may_send_early();
      job->remaining += job->unsent;
      const auto later = std::find_if(runnable_.begin(), runnable_.end(),
                                      [job](const Job* other) { return other->sequence > job->sequence; });
      runnable_.insert(later, job);
      ++pending_;
      wake_one();
      return;
    }
    ++job->segment;
  }
}

void Engine::open_segment(Job* job) {
  job->next_row = 0;
  job->order.clear();
  std::copy(job->failing.begin(), job->failing.end(), job->failed.begin());
  if (job->segment == plan_->segments.size()) return;
  const Segment& segment = plan_->segments[job->segment];
  open_outputs(job, segment);
  if (segment.kind == SegmentKind::Python) begin_python(job, segment);
  if (segment.kind == SegmentKind::Device) {
    try {
      job->on_device->open(segment.steps);
    } catch (const std::exception& error) { fail_all(job, error); }
  } else {
    order_rows(segment, job);
  }
  if (segment.combines) combine_rows(job, segment);
}

// Requires the lock.
void Engine::segment_done(Job* job, std::unique_lock<std::mutex>* lock) {
  if (++job->segment == plan_->segments.size() && resources_) {
    lock->unlock();
    const bool issued = issue(job);
    lock->lock();
    if (issued) {
      issued_.push_back(job);
      device_ready_.notify_one();
      return;
    }
  }
  start_segment(job, lock);
}

void Engine::add_error(Job* job, RowError error) {
  std::lock_guard<std::mutex> hold(mutex_);
  job->failing[error.row] = 1;
  job->errors.push_back(std::move(error));
}

void Engine::fail_row(Job* job, int64_t row, int32_t step, std::string text) {
  add_error(job, {row, step, -1, {}, std::move(text)});
}

// ---- Worker threads ----

std::unique_ptr<RowContext> Engine::take_context() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!contexts_.empty()) {
      auto context = std::move(contexts_.back());
      contexts_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<RowContext>();
  context->buffers.resize(plan_->buffers);
  context->registers.resize(plan_->registers + 1);
  context->params.resize(plan_->parameters + 1);
  memory_.watch(context.get());
  context->clocks.reset(new StepClock[plan_->steps.size()]());
  std::lock_guard<std::mutex> hold(mutex_);
  step_clocks_.push_back(context->clocks);
  return context;
}

void Engine::give_context(std::unique_ptr<RowContext> context) {
  if (!context) return;
  std::lock_guard<std::mutex> hold(mutex_);
  contexts_.push_back(std::move(context));
}

// Slow rows are taken one by one. Of fast rows a thread takes enough that neither the lock nor waking threads
// dominates, and few enough that all threads finish at about the same time.
int64_t Engine::share_of(const Job& job) const {
  const int64_t row_ns = row_ns_[job.segment].load(std::memory_order_relaxed);
  return row_ns == 0 ? 1 : std::max<int64_t>(1, kShareNs / row_ns);
}

void Engine::wake_last() {
  Sleeper* last = asleep_.back();
  asleep_.pop_back();
  last->is_woken = true;
  last->woken.notify_one();
}

int Engine::may_work() const {
  const int before = static_cast<int>(jobs_.size() - idle_.size()) - 1;
  const bool is_ahead = resources_ && before >= kAhead && finished_.load(std::memory_order_relaxed) >= before;
  return is_ahead ? std::max(1, thread_count_ / kCalm) : thread_count_;
}

int Engine::take_most_working() {
  std::lock_guard<std::mutex> hold(mutex_);
  return std::exchange(most_working_, working_);
}

bool Engine::worth_waking() const {
  if (!resumed_.empty() || !shared_.empty() || runnable_.size() != 1) return true;
  const Job& job = *runnable_.front();
  const int64_t row_ns = row_ns_[job.segment].load(std::memory_order_relaxed);
  return row_ns == 0 || (job.rows - job.next_row) * row_ns >= 2 * kShareNs;
}

int64_t Engine::run_share(Job* job, int64_t first, int64_t count, std::unique_ptr<RowContext>* context) {
  std::atomic<int64_t>& row_ns = row_ns_[job->segment];
  if (*context) memory_.trim(context->get());
  const Clock::time_point start = Clock::now();
  Clock::time_point clock = start;
  int64_t finished = 0;
  for (int64_t i = first; i < first + count; ++i) {
    if (!*context) *context = take_context();
    finished += run_row(job, job->row_at(i), 0, context, &clock) == RowEnd::Finished;
  }
  const std::chrono::nanoseconds spent = Clock::now() - start;
  // Few rows should be parked at a time. Rows that turn out to be slow are taken one by one from then on.
  const int64_t each = finished < count ? kShareNs : std::max<int64_t>(1, spent.count() / count);
  const int64_t before = row_ns.load(std::memory_order_relaxed);
  row_ns.store(each > before ? each : (7 * before + each) / 8, std::memory_order_relaxed);
  return finished;
}

int64_t Engine::run_resumed(std::unique_ptr<Parked> parked, std::unique_ptr<RowContext>* context) {
  if (*context) give_context(std::move(*context));
  *context = std::move(parked->context);
  Clock::time_point clock = Clock::now();
  return run_row(parked->job, parked->row, parked->position, context, &clock) == RowEnd::Finished;
}

void Engine::share(const std::function<void()>& work) {
  SharedWork shared{&work};
  {
    std::lock_guard<std::mutex> hold(mutex_);
    shared_.push_back(&shared);
    wake_one();
  }
  work();
  std::unique_lock<std::mutex> lock(mutex_);
  std::erase(shared_, &shared);
  shared.left.wait(lock, [&] { return shared.helping == 0; });
}

void Engine::help(std::unique_lock<std::mutex>* lock) {
  SharedWork* const shared = shared_.front();
  ++shared->helping;
  lock->unlock();
  (*shared->work)();
  take_disk_wait_ns();  // not of this thread's next row
  lock->lock();
  std::erase(shared_, shared);  // nothing of it is left to do
  if (--shared->helping == 0) shared->left.notify_one();
}

void Engine::work() {
  const FloatMode mode;
  std::unique_ptr<RowContext> context;
  Sleeper self(&context);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    // One spinning thread is enough; more would take processor time from working threads.
    if (!closed_ && pending_ == 0 && shared_.empty() && !spinning_) {
      spinning_ = true;
      lock.unlock();
      spin_until([this] { return pending_ > 0 || closed_; }, &longer_pauses_);
      lock.lock();
      spinning_ = false;
    }
    const auto has_rows = [this] { return !runnable_.empty() && parked_ < max_parked_ && working_ < may_work(); };
    const auto ready = [&] { return closed_ || !resumed_.empty() || has_rows() || !shared_.empty(); };
    while (!ready()) {
      asleep_.push_back(&self);
      self.woken.wait(lock, [&] { return self.is_woken; });
      self.is_woken = false;
    }
    if (closed_) break;
    if (resumed_.empty() && !has_rows()) {
      if (ready()) wake_one();
      help(&lock);
      continue;
    }
    Job* job;
    int64_t finished;
    bool has_own = false;
    if (!resumed_.empty()) {
      auto parked = std::move(resumed_.front());
      resumed_.pop_front();
      --pending_;
      job = parked->job;
      if (ready() && worth_waking()) wake_one();
      lock.unlock();
      finished = run_resumed(std::move(parked), &context);
    } else if (runnable_.front()->unsent) {  // concurrently with the threads that describe rows
      most_working_ = std::max(most_working_, ++working_);
      has_own = true;
      job = runnable_.front();
      job->unsent = false;
      if (ready() && worth_waking()) wake_one();
      lock.unlock();
      job->on_device->send_early();
      finished = 1;
    } else {
      most_working_ = std::max(most_working_, ++working_);
      has_own = true;
      job = runnable_.front();
      const int64_t first = job->next_row, count = std::min(share_of(*job), job->rows - first);
      job->next_row += count;
      if (job->next_row == job->rows) {
        runnable_.pop_front();
        --pending_;
      }
      if (ready() && worth_waking()) wake_one();
      lock.unlock();
      finished = run_share(job, first, count, &context);
    }
    lock.lock();
    working_ -= has_own;
    if (finished && (job->remaining -= finished) == 0) {
      if (has_rows()) wake_one();  // this thread may be away for long
      segment_done(job, &lock);
    }
  }
}

// ---- Waiting and shutdown ----

WaitResult Engine::wait(Job* job, double timeout_s) {
  spin_until([&] { return job->state == JobState::Done || closed_; }, &longer_waits_);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ready = [&] { return job->state == JobState::Done || closed_ || (!python_.empty() && !python_served_); };
  if (!job_done_.wait_for(lock, std::chrono::duration<double>(timeout_s), ready)) return WaitResult::Timeout;
  if (job->state == JobState::Done) return WaitResult::Done;
  return closed_ ? WaitResult::Closed : WaitResult::Python;
}

void Engine::close() {
  const gpu::Visit here(resources_ ? resources_->device.get() : nullptr,
                        std::nothrow);  // the threads must end in any case
  {
    std::lock_guard<std::mutex> hold(mutex_);
    closed_ = true;
    wake_all();
    job_done_.notify_all();
    python_ready_.notify_all();
    device_ready_.notify_all();
  }
  workers_.join();
  // Requires the lock, because `acquire` adds jobs. A job that runs on its caller's thread belongs to that thread, and
  // an idle one may be about to start there; neither has work on the device that this thread could wait for.
  std::lock_guard<std::mutex> hold(mutex_);
  for (const auto& job : jobs_)
    if (job->on_device && !job->inlined && job->state != JobState::Idle) job->on_device->drain();
}

void Engine::trim_idle() {
  for (const auto& context : contexts_) memory_.trim(context.get());
  for (const Sleeper* sleeper : asleep_)
    if (*sleeper->context) memory_.trim(sleeper->context->get());
  for (Job* job : idle_) memory_.trim(job);
}

std::vector<uint64_t> Engine::step_times(std::atomic<uint64_t> StepClock::* kind) {
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<uint64_t> total(plan_->steps.size());
  for (const auto& clocks : step_clocks_)
    for (size_t i = 0; i < total.size(); ++i) total[i] += (clocks[i].*kind).load(std::memory_order_relaxed);
  return total;
}

}  // namespace stoker
