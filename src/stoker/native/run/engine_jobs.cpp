// SPDX-License-Identifier: Apache-2.0
// Life cycle of a job, from `acquire` to `release`: on worker threads or on its caller's thread.
#include <algorithm>
#include <utility>

#include "base/float_mode.hpp"
#include "shared/philox.hpp"
#include "run/engine.hpp"
#include "run/sizes.hpp"

namespace stoker {

Job* Engine::acquire(int64_t rows) {
  Job* job = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!idle_.empty()) {
      job = idle_.back();
      idle_.pop_back();
    } else {
      jobs_.push_back(std::make_unique<Job>());
      job = jobs_.back().get();
      memory_.watch(job);
    }
  }
  const size_t n = static_cast<size_t>(rows);
  memory_.trim(job);
  job->plan = plan_.get();
  job->rows = rows;
  fit(&job->keys, n);
  fit(&job->epochs, n);
  fit(&job->epoch_keys, n);
  fit(&job->indices, static_cast<size_t>(plan_->readers));
  for (auto& column : job->indices) fit(&column, n);
  fit(&job->values, n * plan_->values.size());
  for (size_t r = 0; r < n; ++r)
    for (const int32_t v : plan_->inputs) {  // until the caller feeds them
      View& view = job->values[r * plan_->values.size() + static_cast<size_t>(v)];
      view = View{};
      view.rank = -1;
    }
  fit(&job->batch_memory, plan_->values.size());
  fit(&job->outputs, plan_->outputs.size());
  for (OutputMemory& o : job->outputs) o.supplied = o.opened = false;
  job->failed.assign(n, 0);
  job->failing.assign(n, 0);
  job->errors.clear();
  job->memory.begin(rows, limits_);
  job->columns.clear();
  job->segment = 0;
  job->held = job->waiting = false;
  job->resumed.reset();
  if (resources_) {
    try {
      if (!job->on_device) job->on_device = std::make_unique<gpu::JobOnDevice>(*resources_, *plan_);
      job->on_device->expect();
    } catch (...) {
      release(job);
      throw;
    }
  }
  return job;
}

bool Engine::holds_device_memory(const Job& job) {
  return std::any_of(job.outputs.begin(), job.outputs.end(),
                     [](const OutputMemory& o) { return o.device && o.block.data; });
}

void Engine::release(Job* job) {
  for (OutputMemory& o : job->outputs) {
    o.block = BlockPool::Block{};
    if (o.arena) o.arena->release();
  }
  std::lock_guard<std::mutex> hold(mutex_);
  if (job->state == JobState::Done) --finished_;
  job->state = JobState::Idle;
  idle_.push_back(job);
  if (resources_ && !runnable_.empty()) wake_one();  // more workers may work than before
  if (memory_.batch_done(job->rows)) trim_idle();
}

bool Engine::begin_on_device(Job* job) {
  if (!resources_) return true;
  try {
    job->on_device->begin(job->rows);
    return true;
  } catch (const std::exception& error) {
    if (job->rows == 0) throw;  // there is no row that could fail
    fail_all(job, error);
  }
  job->segment = plan_->segments.size();
  return false;
}

void Engine::prepare(Job* job) {
  for (int64_t r = 0; r < job->rows; ++r)
    job->epoch_keys[r] = r && job->epochs[r] == job->epochs[r - 1] ? job->epoch_keys[r - 1]
                                                                   : philox::epoch_key(job->seed, job->epochs[r]);
  for (size_t v = 0; v < plan_->values.size(); ++v) {
    if (plan_->values[v].storage == Storage::Batch) memory_.fit_rows(job, v);
  }
  const int64_t small = job->rows * plan_->small * kSmallValue;
  if (small > 0) job->small_values = job->small.get(static_cast<size_t>(small));
  if (job->on_device) job->on_device->reading(thread_count_, job->held);
  job->state = JobState::Running;
}

void Engine::submit(Job* job) {
  if (job->state != JobState::Idle) return;
  const gpu::Visit here(resources_ ? resources_->device.get() : nullptr,
                        std::nothrow);  // `begin_on_device` says if it fails
  std::unique_lock<std::mutex> lock(mutex_);
  if (!closed_ && workers_.empty())
    workers_.start(thread_count_ + (resources_ ? 1 : 0),
                   [this](int i) { i < thread_count_ ? work() : wait_for_device(); });
  lock.unlock();
  const bool begun = begin_on_device(job);
  lock.lock();
  prepare(job);
  job->inlined = false;
  if (begun) job->sequence = ++sequence_;  // a failed batch gets no number: the next batch would wait for its end
  start_segment(job, &lock);
}

void Engine::admit(Job* job) {
  const gpu::Visit here = visit();
  std::unique_lock<std::mutex> lock(mutex_);
  job->held = false;
  if (!std::exchange(job->waiting, false) || closed_) return;
  start_segment(job, &lock);
}

void Engine::begin(Job* job) {
  const gpu::Visit here(resources_ ? resources_->device.get() : nullptr, std::nothrow);  // as in `submit`
  {
    std::lock_guard<std::mutex> hold(mutex_);
    job->inlined = true;  // set before it runs, so that `close` leaves the job to this thread
  }
  const bool begun = begin_on_device(job);
  prepare(job);
  if (begun) open_segment(job);
}

bool Engine::advance(Job* job, PythonWork* work) {
  const FloatMode mode;
  if (job->segment == plan_->segments.size()) return finish(job), true;  // the batch has failed as a whole
  const gpu::Visit here = visit();
  while (job->segment < plan_->segments.size()) {
    if (plan_->segments[job->segment].kind == SegmentKind::Python) {
      work->job = job;
      work->parked.reset();
      return false;
    }
    std::unique_ptr<RowContext> context;
    Clock::time_point clock = Clock::now();
    while (job->resumed || job->next_row < job->rows) {
      size_t position = 0;
      int64_t row;
      if (job->resumed) {
        row = job->resumed->row;
        position = job->resumed->position;
        give_context(std::exchange(context, std::move(job->resumed->context)));
        job->resumed.reset();
      } else {
        row = job->next_row++;
        if (!context) context = take_context();
      }
      if (run_row(job, row, position, &context, &clock) == RowEnd::Parked) {
        work->job = job;
        work->parked = std::move(job->resumed);
        return false;
      }
    }
    give_context(std::move(context));
    const bool ends = ++job->segment == plan_->segments.size();
    if (ends && resources_ && issue(job) && !settle(job)) job->segment = plan_->device_begin;
    open_segment(job);
  }
  if (plan_->places_rows) close_placed(job);
  finish(job);
  return true;
}

}  // namespace stoker
