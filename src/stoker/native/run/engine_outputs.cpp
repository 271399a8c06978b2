// SPDX-License-Identifier: Apache-2.0
// Memory for a batch's outputs, allocated at the start of the segment that writes them.
#include <algorithm>

#include "run/engine.hpp"
#include "run/sizes.hpp"

namespace stoker {

namespace {

constexpr int64_t kRowAlign = 64;

}  // namespace

void Engine::open_outputs(Job* job, const Segment& segment) {
  fit(&job->registers, plan_->registers + 1);
  for (const int32_t index : segment.opens) {
    const Output& output = plan_->outputs[index];
    try {
      if (output.root >= 0) open_placed(job, static_cast<size_t>(index));
      else open_output(job, output, &job->outputs[index]);
    } catch (const BatchLimitReached& limit) {
      fail_by_limit(job, limit.row, output.value, limit);
      fail_output(job, output, kGivenUp, limit.what());
    } catch (const std::bad_alloc& error) {
      fail_output(job, output, code_of(error), no_memory(error));
    } catch (const gpu::DeviceFailure& failure) { fail_output(job, output, kDeviceFailed, failure.what()); }
  }
}

void Engine::fail_output(Job* job, const Output& output, int32_t why, const std::string& text) {
  for (int64_t r = 0; r < job->rows; ++r) add_error(job, {r, producer_of(output.value), why, {}, text});
}

void Engine::open_output(Job* job, const Output& output, OutputMemory* memory) {
  const Value& value = plan_->values[output.value];
  const int64_t rank = value.rank;
  fit(&memory->shapes, static_cast<size_t>(job->rows * rank));
  fit(&memory->offsets, static_cast<size_t>(job->rows));
  memory->dense = true;
  double total = 0;
  for (int64_t r = 0; r < job->rows; ++r) {
    int64_t* shape = memory->shapes.data() + r * rank;
    if (output.fixed) {
      std::copy(output.shape.begin(), output.shape.end(), shape);
    } else if (job->failed[r] || evaluate(output.scalars, job->row(r), 0, job->registers.data()) >= 0) {
      std::fill(shape, shape + rank, 0);
    } else {
      for (int64_t i = 0; i < rank; ++i) shape[i] = extent_of(job->registers[output.extents[i]]);
    }
    double bytes = bytes_of(value.dtype, shape, rank);
    try {
      if (bytes <= kMaxBytes && !memory->supplied)
        job->memory.require_row(output.device ? Side::Device : Side::Host, r, static_cast<uint64_t>(bytes));
    } catch (const BatchLimitReached& limit) {
      fail_by_limit(job, r, output.value, limit);
      std::fill(shape, shape + rank, 0);
      bytes = 0;
    }
    if (!is_plausible(value.dtype, shape, rank)) {
      add_error(job, {r, producer_of(output.value), -1, {}, kTooLarge});
      std::fill(shape, shape + rank, 0);
    } else {
      total += bytes + kRowAlign;
    }
    if (r && !std::equal(shape, shape + rank, memory->shapes.data())) memory->dense = false;
  }
  if (total > 0x1p62) throw std::bad_alloc();
  int64_t used = 0;
  for (int64_t r = 0; r < job->rows; ++r) {
    const int64_t bytes = static_cast<int64_t>(bytes_of(value.dtype, memory->shapes.data() + r * rank, rank));
    memory->offsets[r] = used;
    used += memory->dense ? bytes : (bytes + kRowAlign - 1) / kRowAlign * kRowAlign;
  }
  memory->device = output.device;
  memory->opened = memory->supplied;
  if (memory->supplied) return;
  require_memory(job, output, *memory, used);
  memory->block = (output.device ? device_pool_ : pool_)->take(static_cast<size_t>(used));
  memory->data = memory->block.data;
  memory->opened = true;
  if (output.device && memory->block.stream != BlockPool::kNoStream) job->on_device->follow(memory->block.stream);
  memory->block.stream = BlockPool::kNoStream;
}

// Count an output's memory before it is taken. Throw BatchLimitReached.
void Engine::require_memory(Job* job, const Output& output, const OutputMemory& memory, int64_t bytes) {
  const Side side = output.device ? Side::Device : Side::Host;
  if (!job->memory.is_limited(side)) return;
  const Value& value = plan_->values[output.value];
  std::vector<uint64_t> by_row(static_cast<size_t>(job->rows));
  for (int64_t r = 0; r < job->rows; ++r)
    by_row[static_cast<size_t>(r)] =
        static_cast<uint64_t>(bytes_of(value.dtype, memory.shapes.data() + r * value.rank, value.rank));
  job->memory.charge_output(side, by_row, static_cast<uint64_t>(bytes));
}

// Report a row without memory. If the batch fails, the error names the row that takes the most, and `row` ends as well.
void Engine::fail_by_limit_at(Job* job, int64_t row, int32_t step, const BatchLimitReached& limit) {
  add_error(job, {limit.row, step, limit.code, {}, limit.what()});
  if (limit.row != row) add_error(job, {row, step, kGivenUp, {}, limit.what()});
}

// Rows are contiguous with the first extent as the outermost one, so that fewer elements are the first ones.
std::string Engine::apply_count(Job* job, int64_t row, const Step& step, int32_t count) const {
  View* values = job->row(row);
  for (const int32_t o : step.counted) {
    const int64_t most = values[step.out[o]].shape[0];
    if (count < 0 || count > most)
      return "the kernel has written a count of " + std::to_string(count) + ", expected 0 to " + std::to_string(most) +
             ", the step's max_output";
  }
  for (const int32_t o : step.counted) values[step.out[o]].shape[0] = count;
  for (size_t i = 0; i < plan_->outputs.size(); ++i) {
    const Output& output = plan_->outputs[i];
    if (output.count != step.out[step.count]) continue;
    int64_t& extent = job->outputs[i].shapes[row * plan_->values[output.value].rank];
    if (count > extent)
      return "the kernel has counted " + std::to_string(count) + " elements, and memory is reserved for " +
             std::to_string(extent);
    extent = count;
  }
  return {};
}

// Return the step that produces a value, for messages.
int32_t Engine::producer_of(int32_t value) const {
  for (size_t s = 0; s < plan_->steps.size(); ++s)
    for (const int32_t out : plan_->steps[s].out)
      if (out == value) return static_cast<int32_t>(s);
  return -1;
}

}  // namespace stoker
