// SPDX-License-Identifier: Apache-2.0
// Work for Python: whole segments and parked rows.
#include <algorithm>
#include <chrono>
#include <utility>

#include "run/engine.hpp"

namespace stoker {

bool Engine::may_start(const PythonWork& work) const {
  return work.parked || !plan_->segments[work.job->segment].ordered || work.job->sequence == turn_;
}

// Python leaves out rows for which a step does not run, and reads fed values without the run loop.
void Engine::begin_python(Job* job, const Segment& segment) {
  for (int64_t r = 0; r < job->rows; ++r) {
    if (job->failing[r]) continue;
    if (!is_fed(*job, r)) add_error(job, {r, segment.steps.empty() ? -1 : segment.steps[0], -1, {}, kNotFed});
    for (const int32_t s : segment.steps) leave_out(job, r, plan_->steps[static_cast<size_t>(s)]);
  }
}

bool Engine::next_python(PythonWork* work, double timeout_s, bool rows_only, bool* closed) {
  std::unique_lock<std::mutex> lock(mutex_);
  python_served_ = true;
  auto next = python_.end();
  python_ready_.wait_for(lock, std::chrono::duration<double>(timeout_s), [&] {
    next = std::find_if(python_.begin(), python_.end(),
                        [&](const PythonWork& w) { return rows_only ? w.parked != nullptr : may_start(w); });
    return closed_.load() || next != python_.end();
  });
  *closed = closed_;
  if (closed_ || next == python_.end()) return false;
  *work = std::move(*next);
  python_.erase(next);
  return true;
}

void Engine::finish_python(PythonWork work) {
  const gpu::Visit here = visit();
  Job* job = work.job;
  if (work.parked) {
    ++work.parked->position;
    if (job->inlined) {
      job->resumed = std::move(work.parked);
      return;
    }
    std::lock_guard<std::mutex> hold(mutex_);
    resumed_.push_back(std::move(work.parked));
    ++pending_;
    // Wake all workers: if the number of parked rows blocked them, a new row can be taken as well.
    if (parked_-- == max_parked_) wake_all();
    else wake_one();
    return;
  }
  ++job->segment;
  if (job->inlined) return open_segment(job);
  std::unique_lock<std::mutex> lock(mutex_);
  if (job->segment == plan_->ordered_end) {
    turn_ = job->sequence + 1;
    python_ready_.notify_all();
  }
  start_segment(job, &lock);
}

}  // namespace stoker
