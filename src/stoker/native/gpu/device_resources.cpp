// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_resources.hpp"

#include "gpu/file_reads.hpp"

namespace stoker::gpu {

size_t DeviceResources::pinned_bytes() const {
  return pinned_pool->bytes() + (file_reads ? file_reads->pinned_bytes() : 0);
}

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

void BatchOrder::begin(WorkStream work_stream) {
  if (!last_launch_) return;
  device_->await_on(work_stream, last_launch_);
  forget();
}

void BatchOrder::ends(WorkStream work_stream) {
  forget();
  last_launch_ = device_->record(work_stream);
}

void BatchOrder::forget() noexcept {
  if (last_launch_) device_->forget(std::exchange(last_launch_, nullptr));
}

}  // namespace stoker::gpu
