// SPDX-License-Identifier: Apache-2.0
// Release of scratch memory after outliers.
//
// Threads and batches keep their scratch memory, so that the steady state allocates nothing. Without a release, memory
// would stay allocated after outliers: sooner or later every thread processes a few huge images. Therefore each buffer
// has a high-water mark over all rows of recent batches, and the owner of a buffer that is much larger releases it.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "run/job.hpp"

namespace stoker {

class WorkingMemory {
 public:
  explicit WorkingMemory(const Plan& plan);

  void watch(RowContext* context);
  // Provide memory for a value in each row of a batch.
  void fit_rows(Job* job, size_t value);
  void watch(Job* job);

  // Count a finished batch; return true if another period has started. Not thread-safe.
  bool batch_done(int64_t rows);
  // Release what recent rows did not need, at most once per period. For the owner, while the memory is not in use.
  void trim(RowContext* context) const {
    if (context->period != period_.load(std::memory_order_relaxed)) trim_now(context);
  }
  void trim(Job* job) const {
    if (job->period != period_.load(std::memory_order_relaxed)) trim_now(job);
  }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  void trim_now(RowContext* context) const;
  void trim_now(Job* job) const;

  // A period lasts for at least this many batches and rows: large batches vary little, while a small batch may lack
  // what the next one needs.
  static constexpr int kBatches = 32;
  static constexpr int64_t kRows = 1024;
  std::vector<RecentHighWaterMark> buffers_, values_;  // per scratch buffer, and per value that crosses segments
  std::vector<RecentHighWaterMark> combined_;          // per step whose kernel combines rows
  RecentHighWaterMark work_[kWorkAreas], small_;
  std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> period_{0};
  int batches_ = 0;  // in this period
  int64_t rows_ = 0;
};

}  // namespace stoker
