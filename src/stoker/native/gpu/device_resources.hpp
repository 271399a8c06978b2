// SPDX-License-Identifier: Apache-2.0
// Resources of a plan with device steps: the device, its memory pools, and the statistics of its steps.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/inputs.hpp"

namespace stoker::gpu {

class FileReads;

// Device time of each step of a plan, measured in one of `kEvery` batches: events between all batches would keep the
// end of one launch from overlapping with the beginning of the next.
class StepTimes {
 public:
  static constexpr uint64_t kEvery = 16;
  bool wanted() { return batches_.fetch_add(1, std::memory_order_relaxed) % kEvery == 1; }  // not the first batch
  void add(const std::vector<int32_t>& steps, const std::vector<double>& ns, int64_t rows);
  // Return the nanoseconds of each of `steps` steps, summed over all measured batches, and the number of rows of these
  // batches.
  std::pair<int64_t, std::vector<double>> total(size_t steps) const;

 private:
  std::atomic<uint64_t> batches_{0};
  mutable std::mutex mutex_;
  std::vector<double> ns_;
  int64_t rows_ = 0;
};

// Order of consecutive batches on the device. A batch begins when the last launch of the batch before begins. Otherwise
// the first launch of the later batch would take the processors between two launches of the earlier one, both batches
// would end at the same time, and the device would have nothing to do until the host has described another batch.
// Not thread-safe: batches are issued one at a time.
class BatchOrder {
 public:
  explicit BatchOrder(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~BatchOrder() { forget(); }
  BatchOrder(const BatchOrder&) = delete;
  BatchOrder& operator=(const BatchOrder&) = delete;

  // Call before a batch's first launch.
  void begin(WorkStream work_stream);
  // Call before a batch's last launch.
  void ends(WorkStream work_stream);

 private:
  void forget() noexcept;

  const std::shared_ptr<Device> device_;
  Event last_launch_ = nullptr;  // passes before the last launch of the batch before; null: none to wait for
};

// Resources of a plan with device steps.
struct DeviceResources {
  std::shared_ptr<Device> device;
  std::shared_ptr<MemoryQuota> quota = std::make_shared<MemoryQuota>();  // of all device memory that the pipeline takes
  std::shared_ptr<StepTimes> times = std::make_shared<StepTimes>();
  std::shared_ptr<ArenaPool> work_arenas;  // intermediate results of batches; set by the engine
  std::shared_ptr<HighWaterMark> upload_mark = std::make_shared<HighWaterMark>();
  std::shared_ptr<DeviceBackingPool> backing_pool;  // device memory of uploads; set by the engine
  std::shared_ptr<PinnedPool> pinned_pool;          // files that are read; set by the engine
  std::shared_ptr<HighWaterMark> input_mark = std::make_shared<HighWaterMark>();
  std::shared_ptr<BatchOrder> order;       // set by the engine
  std::shared_ptr<FileReads> file_reads;   // null: all files are staged
  std::shared_ptr<ArenaPool> file_arenas;  // device memory of its reads; set by the engine

  size_t pinned_bytes() const;  // page-locked memory for files
};

}  // namespace stoker::gpu
