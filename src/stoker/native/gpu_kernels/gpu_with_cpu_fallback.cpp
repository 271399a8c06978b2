// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/gpu_with_cpu_fallback.hpp"

#include <chrono>

#include "run/job.hpp"

namespace stoker::gpu {

namespace {

// Multiples of the golden ratio: evenly spread over [0, 1) for any keys.
double spread(uint64_t key) { return static_cast<double>((key * 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53; }

}  // namespace

Outcome GpuWithCpuFallback::run(const Call& call) const {
  if (call.on_host) return run_on_cpu(call, allocate_host_output(call), "the GPU gave it up");
  if (spread(call.job.keys[static_cast<size_t>(call.row)]) < cpu_share_) {
    // Shares only serve speed: without memory for its pixels, the row is left to the GPU.
    uint8_t* host_output = nullptr;
    try {
      host_output = allocate_host_output(call);
    } catch (const std::bad_alloc&) { no_memory_.fetch_add(1, std::memory_order_relaxed); }
    if (host_output) return run_on_cpu(call, host_output, "the CPU's share");
  }
  const Outcome outcome = on_gpu_->run(call);
  if (outcome == Outcome::Python) {
    const std::string reason = std::move(*call.error);
    call.error->clear();
    return run_on_cpu(call, allocate_host_output(call), reason);
  }
  if (outcome == Outcome::Ok) rows_on_gpu_.fetch_add(1, std::memory_order_relaxed);
  return outcome;
}

uint8_t* GpuWithCpuFallback::allocate_host_output(const Call& call) const {
  const View& out = *call.out[0];
  return call.memory->allocate_host(static_cast<size_t>(out.elements() * size_of(out.dtype)));
}

Outcome GpuWithCpuFallback::run_on_cpu(const Call& call, uint8_t* host_output, const std::string& reason) const {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    ++reasons_[reason];
  }
  if (!on_gpu_->complete(call)) return Outcome::Error;
  View host = *call.out[0];
  host.device = false;
  host.planes = nullptr;
  host.data = host_output;
  host.set_contiguous_strides();
  View* out[] = {&host};
  Call here = call;
  here.in = call.host_in;
  here.out = out;
  here.slot = nullptr;
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = on_cpu_->run(here);
  const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - start;
  cpu_ns_.fetch_add(static_cast<uint64_t>(spent.count()), std::memory_order_relaxed);
  // Also for rows that Python fills: the device gets the contents at the time when the batch is sent.
  *call.out[0] = host;
  return outcome == Outcome::Ok ? Outcome::OnHost : outcome;
}

Verdict GpuWithCpuFallback::judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const {
  const Verdict verdict = on_gpu_->judge(report, row, slot, error);
  if (verdict == Verdict::Redo) rows_on_gpu_.fetch_sub(1, std::memory_order_relaxed);
  return verdict;
}

int64_t GpuWithCpuFallback::rows_on_cpu() const {
  std::lock_guard<std::mutex> hold(mutex_);
  int64_t rows = 0;
  for (const auto& [reason, count] : reasons_) rows += count;
  return rows;
}

std::map<std::string, int64_t> GpuWithCpuFallback::reasons() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return reasons_;
}

}  // namespace stoker::gpu
