// SPDX-License-Identifier: Apache-2.0
// Device part of a batch: it is issued as a whole when its last segment has been described, awaited by one thread, and
// judged.
#include <algorithm>

#include "run/engine.hpp"
#include "run/sizes.hpp"
#include "run/spin.hpp"

namespace stoker {

namespace {

constexpr int kDeviceSpinUs = 100;  // a thread that sleeps until an event wakes up tens of microseconds after it

}  // namespace

bool Engine::issue(Job* job) {
  try {
    for (size_t i = plan_->device_begin; i < plan_->segments.size(); ++i)
      job->on_device->plan_launches(*plan_, plan_->segments[i].steps);
    job->on_device->call_ahead();
    std::lock_guard<std::mutex> one_batch_at_a_time(issuing_);
    job->on_device->issue();
    return true;
  } catch (const std::exception& error) {
    job->on_device->abandon();
    fail_all(job, error);
  }
  return false;
}

// Return whether a later step on the device reads other rows than its own.
bool Engine::is_read_by_others(int32_t step) const {
  for (size_t i = plan_->device_begin; i < plan_->device_exchange_end; ++i) {
    const std::vector<int32_t>& steps = plan_->segments[i].steps;
    if (std::find(steps.begin(), steps.end(), step) != steps.end()) return true;
  }
  return false;
}

bool Engine::settle(Job* job) {
  bool again = false;
  try {
    spin_until([&] { return job->on_device->passed(); }, &longer_device_waits_, kDeviceSpinUs);
    job->on_device->await();
    for (const gpu::JobOnDevice::Finding& finding : job->on_device->inspect(*plan_)) {
      again |= finding.verdict == gpu::Verdict::Redo;
      if (finding.verdict != gpu::Verdict::Error) continue;
      // Other rows have read this one, which had not failed when they were described.
      again |= is_read_by_others(finding.step);
      add_error(job, {finding.row, finding.step, -1, {}, finding.error});
    }
    if (again) {
      job->memory.restart();
      fetch_inputs(job);
    } else {
      take_counts(job);
      job->on_device->finish();
    }
  } catch (const std::exception& error) {
    job->on_device->abandon_rows();
    return fail_all(job, error), true;
  }
  return !again;
}

// Give rows their real extents after the device has counted.
void Engine::take_counts(Job* job) {
  for (size_t s = 0; s < plan_->steps.size(); ++s) {
    const Step& step = plan_->steps[s];
    if (step.count < 0 || !step.on_device) continue;
    const int32_t index = static_cast<int32_t>(s);
    for (int64_t r = 0; r < job->rows; ++r) {
      if (job->failing[r] || !job->on_device->has_described(index, r)) continue;
      std::string wrong = apply_count(job, r, step, job->on_device->count(index, r));
      if (!wrong.empty()) add_error(job, {r, index, -1, {}, std::move(wrong)});
    }
  }
}

// Inputs of rows that run again. The loop's views are updated to the new addresses.
void Engine::fetch_inputs(Job* job) {
  job->on_device->fetch_inputs();
  const size_t views = static_cast<size_t>(job->rows) * plan_->values.size();
  for (size_t i = 0; i < views; ++i)
    if (View& view = job->values[i]; !view.device) view.data = job->on_device->current_address(view.data);
}

void Engine::wait_for_device() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    device_ready_.wait(lock, [this] { return closed_ || !issued_.empty(); });
    if (closed_) return;
    Job* job = issued_.front();
    issued_.pop_front();
    lock.unlock();
    const bool done = settle(job);
    lock.lock();
    if (!done) job->segment = plan_->device_begin;
    start_segment(job, &lock);
  }
}

void Engine::move_on_device(const std::vector<Move>& moves, uintptr_t after) {
  gpu::Device& device = *resources_->device;
  const gpu::Visit here(&device);
  const gpu::WorkStream work_stream = device.next_work_stream();
  gpu::do_now(device, work_stream, [&] {
    if (after != BlockPool::kNoStream) device.follow(work_stream, after);
    for (const Move& m : moves)
      if (m.bytes) device.move(work_stream, m.to, m.from, m.bytes);
  });
}

void Engine::fail_all(Job* job, const std::exception& error) {
  if (const auto* memory = dynamic_cast<const std::bad_alloc*>(&error))
    return fail_all(job, no_memory(*memory), code_of(*memory));
  fail_all(job, error.what(), kDeviceFailed);
}

void Engine::fail_all(Job* job, const std::string& text, int32_t why) {
  const bool has_steps = plan_->device_begin < plan_->segments.size();
  const int32_t step = has_steps ? plan_->segments[plan_->device_begin].steps.front() : -1;
  for (int64_t r = 0; r < job->rows; ++r)
    if (!job->failing[r]) add_error(job, {r, step, why, {}, text});
}

}  // namespace stoker
