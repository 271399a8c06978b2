// SPDX-License-Identifier: Apache-2.0
// Job: one batch on its way through a plan, with the memory and the state of its rows. Kernels read the keys of its
// rows.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/block_pool.hpp"
#include "io/files.hpp"
#include "plan/plan.hpp"
#include "run/batch_memory.hpp"
#include "run/job_on_device.hpp"
#include "run/row_arena.hpp"

namespace stoker {

// Time of a step on one thread. Only that thread writes; the report reads concurrently.
struct StepClock {
  std::atomic<uint64_t> run_ns{0}, disk_wait_ns{0};  // the second is a part of the first

  void add(uint64_t run, uint64_t disk_wait) {
    run_ns.store(run_ns.load(std::memory_order_relaxed) + run, std::memory_order_relaxed);
    if (disk_wait > 0)
      disk_wait_ns.store(disk_wait_ns.load(std::memory_order_relaxed) + disk_wait, std::memory_order_relaxed);
  }
};

// Memory and parameters of one row on its way through a segment.
struct RowContext {
  std::vector<Scratch> buffers;
  Scratch work[kWorkAreas];
  View there[kMaxStepInputs];  // a step's inputs with device addresses
  HeldFile held;
  std::vector<double> registers, params;
  std::shared_ptr<StepClock[]> clocks;  // by step
  uint64_t period = 0;                  // period of the last trim (run/working_memory.hpp)
};

constexpr int32_t kFatal = -2, kDeviceFailed = -3, kSystemFailed = -4;
// Memory: the row alone exceeds the limit of a batch; the batch does, and this row takes the most; the row was given up
// because the batch fails; the system has no memory.
constexpr int32_t kRowTooLarge = -5, kBatchTooLarge = -6, kGivenUp = -7, kNoMemory = -8;
constexpr int32_t kUnreadable = -9;  // an input/output error

struct RowError {
  int64_t row = -1;
  int32_t step = -1;
  // Index of a check's message. -1: `text`; one of the constants above: `text`, and the row's data are not to blame.
  int32_t message = -1;
  std::vector<double> values;
  std::string text;
};

struct OutputMemory {
  uint8_t* data = nullptr;  // dense base, or base of the packed rows
  bool supplied = false;    // memory of the consumer
  bool opened = false;      // memory and shapes are this batch's, and have not been taken
  bool dense = true;
  bool device = false;  // `data` is a device address
  BlockPool::Block block;
  std::vector<int64_t> shapes;   // rows x rank
  std::vector<int64_t> offsets;  // bytes from `data`
  // Placed outputs (Output::root):
  bool takes_root = false;       // the root is allocated in `arena`; else the rows are copied there
  std::vector<uint8_t*> places;  // of the rows
  std::unique_ptr<RowArena> arena;
};

enum class JobState : uint8_t { Idle, Running, Done };

struct Job;

// Row that waits for Python, with everything it holds.
struct Parked {
  Job* job;
  int64_t row;
  size_t position;  // in the segment's list of steps
  std::unique_ptr<RowContext> context;
  std::vector<double> params;
  std::string reason;  // why the kernel handed the row over; empty if the step always runs in Python
};

// Input of all rows, with `step` bytes from one row to the next.
struct FedColumn {
  int32_t value;
  View first;
  int64_t step;
};

struct Job {
  const Plan* plan = nullptr;
  uint64_t period = 0;  // like RowContext::period
  int64_t rows = 0;
  uint64_t sequence = 0;
  uint64_t seed = 0;
  std::vector<uint64_t> keys;
  std::vector<int64_t> epochs;
  std::vector<std::vector<int64_t>> indices;       // per reader
  std::vector<uint64_t> epoch_keys;                // Philox key of each row's epoch
  std::vector<View> values;                        // rows x plan values
  std::vector<FedColumn> columns;                  // inputs that each row takes when it runs
  std::vector<std::vector<Scratch>> batch_memory;  // per value that crosses segments, per row
  std::vector<Combined> combined;                  // by Step::combined
  Scratch small;                                   // small values that cross segments, row by row
  uint8_t* small_values = nullptr;
  std::vector<OutputMemory> outputs;
  BatchMemory memory;
  std::vector<uint8_t> failed;   // per row: failed before this segment, so that all rows see the same
  std::vector<uint8_t> failing;  // per row: failed up to now
  std::vector<RowError> errors;
  std::vector<double> registers;  // for the outputs' extents
  std::atomic<JobState> state{JobState::Idle};
  size_t segment = 0;
  int64_t next_row = 0;        // first unclaimed row of the segment, or its position in `order`
  std::vector<int64_t> order;  // rows with the most work first; empty: in natural order
  std::vector<double> costs;
  int64_t remaining = 0;            // number of unfinished rows of the segment
  bool inlined = false;             // runs on the caller's thread
  bool unsent = false;              // a thread must send the files, concurrently with threads that take rows
  bool held = false;                // it must not enter its device segments yet
  bool waiting = false;             // it is held and has reached its device segments
  std::unique_ptr<Parked> resumed;  // only inlined jobs: the row to resume
  std::unique_ptr<gpu::JobOnDevice> on_device;  // null without a GPU

  View* row(int64_t r) { return values.data() + r * static_cast<int64_t>(plan->values.size()); }
  // Set the input of all rows. If possible, each row takes its input when it runs: the view is then in the cache of the
  // row's core, and costs the caller no time.
  void feed(const FedColumn& column) {
    if (plan->rows_find_inputs) return columns.push_back(column);
    for (int64_t r = 0; r < rows; ++r) take(column, r);
  }
  void take(const FedColumn& column, int64_t r) {
    View& v = row(r)[column.value];
    v = column.first;
    v.data += r * column.step;
  }
  uint8_t* small_at(int64_t r, const Value& value) {
    return small_values + (r * plan->small + value.small) * kSmallValue;
  }
  // Map a position in the processing order to a row.
  int64_t row_at(int64_t position) const { return order.empty() ? position : order[static_cast<size_t>(position)]; }
};

// Sort a segment's rows by their estimated cost, into the order in which threads take them (run/row_order.cpp).
void order_rows(const Segment& segment, Job* job);

}  // namespace stoker
