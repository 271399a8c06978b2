// SPDX-License-Identifier: Apache-2.0
// A step that the GPU makes for most rows and the CPU for some, with the same bits: what the GPU has no form for, what
// it gave up, and the CPU's share of the work.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "gpu.hpp"

namespace stoker::gpu {

class Either : public Kernel {
 public:
  // `on_gpu` answers Outcome::Python, with the reason as error, for rows that it leaves to the CPU. Both have one
  // output, whose extents are known before they run.
  Either(std::shared_ptr<const Kernel> on_gpu, std::shared_ptr<const stoker::Kernel> on_cpu)
      : on_gpu_(std::move(on_gpu)), on_cpu_(std::move(on_cpu)) {}

  size_t slot_bytes() const override { return on_gpu_->slot_bytes(); }
  Outcome run(const Call& call) const override;
  void launch(Batch& batch) const override { on_gpu_->launch(batch); }
  Verdict judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const override;

  const Kernel& on_gpu() const { return *on_gpu_; }

  // The CPU's part of the rows that both can do: 0 to 1. Rows are chosen by their keys' hash, so that the choice does
  // not depend on threads or batches; the bits do not depend on it in any case.
  void set_cpu_share(double share) { cpu_share_ = share; }
  double cpu_share() const { return cpu_share_; }
  int64_t rows_on_gpu() const { return rows_on_gpu_; }
  int64_t rows_on_cpu() const { return rows_on_cpu_; }
  // Rows of the CPU's share that the GPU made, since there was no memory for their pixels.
  int64_t rows_without_room() const { return no_room_; }
  // Time of worker threads in the rows that the CPU made.
  uint64_t cpu_ns() const { return cpu_ns_; }
  // Why rows were left to the CPU, and how many for each reason.
  std::map<std::string, int64_t> reasons() const;

 private:
  uint8_t* room_for(const Call& call) const;
  Outcome run_on_cpu(const Call& call, uint8_t* room, const std::string& reason) const;
  const std::shared_ptr<const Kernel> on_gpu_;
  const std::shared_ptr<const stoker::Kernel> on_cpu_;
  std::atomic<double> cpu_share_{0};
  mutable std::atomic<int64_t> rows_on_gpu_{0}, rows_on_cpu_{0}, no_room_{0};
  mutable std::atomic<uint64_t> cpu_ns_{0};
  mutable std::mutex mutex_;
  mutable std::map<std::string, int64_t> reasons_;
};

}  // namespace stoker::gpu
