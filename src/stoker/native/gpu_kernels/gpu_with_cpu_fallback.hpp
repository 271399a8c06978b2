// SPDX-License-Identifier: Apache-2.0
// GPU kernel with a CPU fallback for some rows, with the same bits: rows that the GPU has no form for, rows that it
// gave up, and the CPU's share of the work.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "gpu/gpu.hpp"

namespace stoker::gpu {

class GpuWithCpuFallback : public Kernel {
 public:
  // `on_gpu` returns Outcome::Python, with the reason as error, for rows that it leaves to the CPU. Both kernels have
  // one output, whose extents are known before they run.
  GpuWithCpuFallback(std::shared_ptr<const Kernel> on_gpu, std::shared_ptr<const stoker::Kernel> on_cpu)
      : on_gpu_(std::move(on_gpu)), on_cpu_(std::move(on_cpu)) {}

  Ports ports() const override { return on_gpu_->ports(); }
  void check(const StepFacts& step) const override {
    on_gpu_->check(step);
    on_cpu_->check(step);
  }
  bool fits(const Call& call) const override { return on_gpu_->fits(call) && on_cpu_->fits(call); }
  size_t slot_bytes() const override { return on_gpu_->slot_bytes(); }
  Outcome run(const Call& call) const override;
  void launch(Batch& batch) const override { on_gpu_->launch(batch); }
  Verdict judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const override;
  void abandon(const uint8_t* slot) const noexcept override { on_gpu_->abandon(slot); }

  const Kernel& on_gpu() const { return *on_gpu_; }

  // Part of the rows that both can compute which the CPU takes, 0 to 1. Rows are selected by a hash of their keys, so
  // that the selection does not depend on threads or batches; the bits do not depend on it in any case.
  void set_cpu_share(double share) { cpu_share_ = share; }
  double cpu_share() const { return cpu_share_; }
  int64_t rows_on_gpu() const { return rows_on_gpu_; }
  // The sum of the reasons' counts. A report of both should only call `reasons`: rows may be counted between two calls.
  int64_t rows_on_cpu() const;
  // Rows of the CPU's share that the GPU computed, because there was no memory for their pixels.
  int64_t rows_without_memory() const { return no_memory_; }
  // Time of worker threads in rows that the CPU computed.
  uint64_t cpu_ns() const { return cpu_ns_; }
  // Reasons why rows were left to the CPU, with the number of rows for each.
  std::map<std::string, int64_t> reasons() const;

 private:
  uint8_t* allocate_host_output(const Call& call) const;
  Outcome run_on_cpu(const Call& call, uint8_t* host_output, const std::string& reason) const;
  const std::shared_ptr<const Kernel> on_gpu_;
  const std::shared_ptr<const stoker::Kernel> on_cpu_;
  std::atomic<double> cpu_share_{0};
  mutable std::atomic<int64_t> rows_on_gpu_{0}, no_memory_{0};
  mutable std::atomic<uint64_t> cpu_ns_{0};
  mutable std::mutex mutex_;
  mutable std::map<std::string, int64_t> reasons_;
};

}  // namespace stoker::gpu
