// SPDX-License-Identifier: Apache-2.0
// A job from when it is taken to when it is given back: begun on worker threads, or run on its caller's.
#include <utility>

#include "engine.hpp"
#include "engine_sizes.hpp"
#include "float_mode.hpp"
#include "philox.hpp"

namespace stoker {

Job* Engine::acquire(int64_t rows) {
  const gpu::Visit here = visit();
  Job* job = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!idle_.empty()) {
      job = idle_.back();
      idle_.pop_back();
    } else {
      jobs_.push_back(std::make_unique<Job>());
      job = jobs_.back().get();
    }
  }
  const size_t n = static_cast<size_t>(rows);
  job->plan = plan_.get();
  job->rows = rows;
  fit(&job->keys, n);
  fit(&job->epochs, n);
  fit(&job->epoch_keys, n);
  fit(&job->indices, static_cast<size_t>(plan_->readers));
  for (auto& column : job->indices) fit(&column, n);
  fit(&job->values, n * plan_->values.size());
  fit(&job->batch_memory, plan_->values.size());
  fit(&job->outputs, plan_->outputs.size());
  for (OutputMemory& o : job->outputs) o.supplied = false;
  job->failed.assign(n, 0);
  job->failing.assign(n, 0);
  job->errors.clear();
  job->columns.clear();
  job->segment = 0;
  job->held = job->waiting = false;
  job->resumed.reset();
  if (place_) {
    try {
      if (!job->on_device) job->on_device = std::make_unique<gpu::JobOnDevice>(*place_, *plan_);
      job->on_device->begin(rows);
    } catch (...) {
      release(job);
      throw;
    }
  }
  return job;
}

void Engine::release(Job* job) {
  for (OutputMemory& o : job->outputs) o.block = BlockPool::Block{};
  std::lock_guard<std::mutex> hold(mutex_);
  if (job->state == JobState::Done) --finished_;
  job->state = JobState::Idle;
  idle_.push_back(job);
}

void Engine::prepare(Job* job) {
  for (int64_t r = 0; r < job->rows; ++r)
    job->epoch_keys[r] = r && job->epochs[r] == job->epochs[r - 1] ? job->epoch_keys[r - 1]
                                                                   : philox::epoch_key(job->seed, job->epochs[r]);
  for (size_t v = 0; v < plan_->values.size(); ++v) {
    const Value& value = plan_->values[v];
    if (value.where == Where::Batch && job->batch_memory[v].size() < static_cast<size_t>(job->rows))
      fit(&job->batch_memory[v], static_cast<size_t>(job->rows));
  }
  const int64_t small = job->rows * plan_->small * kSmallValue;
  if (small > 0) job->small_values = job->small.get(static_cast<size_t>(small));
  if (job->on_device) job->on_device->reading(thread_count_, job->held);
  job->state = JobState::Running;
}

void Engine::submit(Job* job) {
  if (job->state != JobState::Idle) return;
  const gpu::Visit here = visit();
  std::unique_lock<std::mutex> lock(mutex_);
  if (workers_.empty() && !closed_) {
    for (int i = 0; i < thread_count_; ++i) workers_.emplace_back([this] { work(); });
    if (place_) workers_.emplace_back([this] { wait_for_device(); });
  }
  prepare(job);
  job->inlined = false;
  job->sequence = ++sequence_;
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
  const gpu::Visit here = visit();
  prepare(job);
  job->inlined = true;
  open_segment(job);
}

bool Engine::advance(Job* job, PythonWork* work) {
  const FloatMode mode;
  const gpu::Visit here = visit();
  while (job->segment < plan_->segments.size()) {
    if (plan_->segments[job->segment].runs == Runs::Python) {
      work->job = job;
      work->parked.reset();
      return false;
    }
    while (job->resumed || job->next_row < job->rows) {
      std::unique_ptr<RowContext> context;
      size_t position = 0;
      int64_t row;
      if (job->resumed) {
        row = job->resumed->row;
        position = job->resumed->position;
        context = std::move(job->resumed->context);
        job->resumed.reset();
      } else {
        row = job->next_row++;
        context = take_context();
      }
      if (run_row(job, row, position, &context) == RowEnd::Parked) {
        work->job = job;
        work->parked = std::move(job->resumed);
        return false;
      }
      give_context(std::move(context));
    }
    const bool ends = ++job->segment == plan_->segments.size();
    if (ends && place_ && issue(job) && !settle(job)) job->segment = plan_->device_begin;
    open_segment(job);
  }
  finish(job);
  return true;
}

}  // namespace stoker
