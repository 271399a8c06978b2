// SPDX-License-Identifier: Apache-2.0
#include "run/working_memory.hpp"

#include "run/sizes.hpp"

namespace stoker {

WorkingMemory::WorkingMemory(const Plan& plan)
    : buffers_(static_cast<size_t>(plan.buffers)),
      values_(plan.values.size()),
      combined_(static_cast<size_t>(plan.combining)) {}

void WorkingMemory::watch(RowContext* context) {
  for (size_t i = 0; i < context->buffers.size(); ++i) context->buffers[i].watch(&buffers_[i], &bytes_);
  for (int i = 0; i < kWorkAreas; ++i) context->work[i].watch(&work_[i], &bytes_);
  context->period = period_;
}

void WorkingMemory::watch(Job* job) {
  job->small.watch(&small_, &bytes_);
  job->combined.resize(combined_.size());
  for (size_t i = 0; i < combined_.size(); ++i) job->combined[i].memory.watch(&combined_[i], &bytes_);
  job->period = period_;
}

void WorkingMemory::fit_rows(Job* job, size_t value) {
  std::vector<Scratch>& rows = job->batch_memory[value];
  const size_t before = rows.size();
  if (before >= static_cast<size_t>(job->rows)) return;
  fit(&rows, static_cast<size_t>(job->rows));
  for (size_t r = before; r < rows.size(); ++r) rows[r].watch(&values_[value], &bytes_);
}

bool WorkingMemory::batch_done(int64_t rows) {
  rows_ += rows;
  if (++batches_ < kBatches || rows_ < kRows) return false;
  batches_ = 0;
  rows_ = 0;
  for (RecentHighWaterMark& most : buffers_) most.start_period();
  for (RecentHighWaterMark& most : values_) most.start_period();
  for (RecentHighWaterMark& most : work_) most.start_period();
  for (RecentHighWaterMark& most : combined_) most.start_period();
  small_.start_period();
  ++period_;
  return true;
}

void WorkingMemory::trim_now(RowContext* context) const {
  context->period = period_;
  for (Scratch& buffer : context->buffers) buffer.trim();
  for (Scratch& area : context->work) area.trim();
}

void WorkingMemory::trim_now(Job* job) const {
  job->period = period_;
  job->small.trim();
  for (Combined& combined : job->combined) combined.memory.trim();
  for (std::vector<Scratch>& rows : job->batch_memory)
    for (Scratch& memory : rows) memory.trim();
}

}  // namespace stoker
