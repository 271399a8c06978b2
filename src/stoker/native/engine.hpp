// SPDX-License-Identifier: Apache-2.0
// The run loop: jobs (one batch each) go through a plan's segments, rows of several jobs at once on worker threads.
//
// A row runs through a whole native segment on one thread, so that what one step writes is still in cache for the
// next. A row whose kernel asks for Python is parked with its memory and goes on later; the other rows do not wait,
// unless so many are parked that Python is what limits the rate.
// Segments are barriers: a Python segment, or a step that reads other rows, starts when all rows have come so far.
// Python segments with effects take the batches in order, whatever the threads and the prefetch depth.
//
// Segments on a GPU come last. Their rows describe themselves on the worker threads like those of any other segment;
// then the whole batch is issued at once, and one thread waits for the device. Rows that the device could not do go
// through those segments once more, with the step in question on the CPU.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "block_pool.hpp"
#include "files.hpp"
#include "gpu_job.hpp"
#include "plan.hpp"

namespace stoker {

// Memory and parameters of one row on its way through a segment.
struct RowContext {
  std::vector<Scratch> buffers;
  Scratch work[kWorkAreas];
  View there[kMaxStepInputs];  // a step's inputs as a device finds them
  HeldFile held;
  std::vector<double> registers, params;
  std::shared_ptr<std::atomic<uint64_t>[]> step_ns;  // time in each step; read by the report while it grows
};

constexpr int32_t kFatal = -2, kDeviceFailed = -3;

struct RowError {
  int64_t row = -1;
  int32_t step = -1;
  int32_t message = -1;  // index of a check's message, or -1: `text`, or `text` and no row is to blame: kFatal, kDeviceFailed
  std::vector<double> values;
  std::string text;
};

struct OutputMemory {
  uint8_t* data = nullptr;      // dense base, or base of the packed rows
  bool supplied = false;        // by the consumer
  bool dense = true;
  bool device = false;          // `data` is an address of a GPU's memory
  BlockPool::Block block;
  std::vector<int64_t> shapes;  // rows x rank
  std::vector<int64_t> offsets; // bytes from data
};

enum class JobState : uint8_t { Idle, Running, Done };

struct Job;

// A row that waits for Python, with all it holds.
struct Parked {
  Job* job;
  int64_t row;
  size_t position;  // in the segment's step list
  std::unique_ptr<RowContext> context;
  std::vector<double> params;
  std::string reason;  // why the kernel handed the row over; empty where that is what the step is for
};

// An input of all rows: `step` bytes are from one row's to the next one's.
struct FedColumn {
  int32_t value;
  View first;
  int64_t step;
};

struct Job {
  const Plan* plan = nullptr;
  int64_t rows = 0;
  uint64_t sequence = 0;
  uint64_t seed = 0;
  std::vector<uint64_t> keys;
  std::vector<int64_t> epochs;
  std::vector<std::vector<int64_t>> indices;       // per reader
  std::vector<uint64_t> epoch_keys;                // philox key of each row's epoch
  std::vector<View> values;                        // rows x plan values
  std::vector<FedColumn> columns;                  // inputs that every row takes when it runs
  std::vector<std::vector<Scratch>> batch_memory;  // per value (those that cross segments), per row
  Scratch small;                                   // per row, one after the other: such values of few bytes
  uint8_t* small_values = nullptr;
  std::vector<OutputMemory> outputs;
  std::vector<uint8_t> failed;                     // per row: before this segment, so that all rows see the same
  std::vector<uint8_t> failing;                    // per row: up to now
  std::vector<RowError> errors;
  std::vector<double> registers;                   // for the outputs' extents
  std::atomic<JobState> state{JobState::Idle};
  size_t segment = 0;
  int64_t next_row = 0;   // first unclaimed row of the segment, or its place in `order`
  std::vector<int64_t> order;       // rows, the most work first; empty: as they come
  std::vector<double> costs;
  int64_t remaining = 0;  // rows of the segment that are not finished
  bool inlined = false;   // runs on the caller's thread
  bool unsent = false;    // a thread has to send its files, beside those that take rows
  bool held = false;      // it may not begin with its device segments yet,
  bool waiting = false;   // and has come to them
  std::unique_ptr<Parked> resumed;  // inlined only: the row to go on with
  std::unique_ptr<gpu::JobOnDevice> on_device;  // null without a GPU

  View* row(int64_t r) { return values.data() + r * static_cast<int64_t>(plan->values.size()); }
  // The rows of an input. What each takes itself is in its own core's cache then, and not the caller's work.
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
  // Of the segment's rows in the order in which threads take them.
  int64_t row_at(int64_t place) const { return order.empty() ? place : order[static_cast<size_t>(place)]; }
};

// Puts a segment's rows in the order in which threads take them, by what is known of their cost (row_order.cpp).
void order_rows(const Segment& segment, Job* job);

// Work for Python: a whole Python segment of a job, or one parked row.
struct PythonWork {
  Job* job = nullptr;
  std::unique_ptr<Parked> parked;  // null: the job's segment
};

enum class Wait : uint8_t { Done, Python, Timeout, Closed };

class Engine {
 public:
  // `place`: what the plan's device segments run on; null if it has none.
  Engine(std::shared_ptr<const Plan> plan, int threads, std::unique_ptr<gpu::Place> place = nullptr);
  ~Engine();

  Job* acquire(int64_t rows);   // an idle job with room for `rows`
  void release(Job* job);       // after its outputs have been taken
  void submit(Job* job);        // queue it, once; starts the threads when called first
  // Lets a job that was held go on to the device. What it needs there is taken only then.
  void admit(Job* job);
  int finished() const { return finished_.load(std::memory_order_relaxed); }  // jobs that have not been given back
  uint64_t device_bytes() const { return place_ ? place_->account->taken.load() : 0; }
  size_t locked_bytes() const { return place_ ? place_->locked->bytes() : 0; }  // page-locked, for files
  void begin(Job* job);         // run it on the caller's thread instead (then `advance`)
  bool advance(Job* job, PythonWork* work);  // true: done; false: `work` is to be run, then `finish_python`

  Wait wait(Job* job, double timeout_s);
  bool next_python(PythonWork* work, double timeout_s, bool* closed);  // for the thread that runs Python work
  void finish_python(PythonWork work);
  void fail_row(Job* job, int64_t row, int32_t step, std::string text);

  // Stop after the rows in flight. May be called often and from several threads: when it returns, nothing writes any
  // more into memory that was given.
  void close();
  bool closed() const { return closed_.load(); }
  const Plan& plan() const { return *plan_; }
  std::shared_ptr<gpu::Device> device() const { return place_ ? place_->device : nullptr; }
  gpu::Visit visit() const { return gpu::Visit(place_ ? place_->device.get() : nullptr); }  // for threads of others
  int threads() const { return thread_count_; }
  size_t scratch_bytes();
  void give_context(std::unique_ptr<RowContext> context);
  std::vector<uint64_t> step_times();  // nanoseconds per step, over all threads
  // The device's nanoseconds per step in the batches that were measured, and how many rows these had.
  std::pair<int64_t, std::vector<double>> device_times() const {
    const size_t steps = plan_->steps.size();
    return place_ ? place_->times->total(steps) : std::pair{int64_t{0}, std::vector<double>(steps)};
  }

  bool active(Job* job, int64_t row, const Step& step) const;
  // Copies within the device's memory, in order, for outputs that are put together after their batch was made; done
  // when it returns. `after`: a consumer's stream that may still work there.
  struct Move {
    gpu::Address to, from;
    size_t bytes;
  };
  void move_on_device(const std::vector<Move>& moves, uintptr_t after = BlockPool::kNoStream);
  BlockPool::Block room_on_device(size_t bytes) {
    const gpu::Visit here = visit();
    return device_pool_->take(bytes);
  }
  // Memory for a value that a Python segment makes, or that crosses segments.
  View* place(Job* job, int64_t row, int32_t value, RowContext* context, const int64_t* shape);

 private:
  enum class RowEnd { Finished, Parked };
  void work();
  // There is work: one worker that sleeps is woken, and wakes the next when it has taken some and there is more. So no
  // more are woken than there is work for, and who brings it wakes one, or none if one has not gone to sleep yet.
  void wake_one() {
    if (!asleep_.empty() && !looking_) wake_last();
  }
  // Who went to sleep last is woken first: what it works in is still in its core's cache, and the others are left alone.
  void wake_last();
  void wake_all() {
    while (!asleep_.empty()) wake_last();
  }
  struct Sleeper {
    std::condition_variable woken;
    bool is_woken = false;
  };
  // Whether what a thread leaves behind is worth waking another for.
  bool worth_waking() const;
  // How many rows of its segment a thread takes at a time.
  int64_t share_of(const Job& job) const;
  // Runs rows that a thread has taken; how many of them are finished. The others are parked.
  int64_t run_share(Job* job, int64_t first, int64_t count, std::unique_ptr<RowContext>* context);
  int64_t run_resumed(std::unique_ptr<Parked> parked, std::unique_ptr<RowContext>* context);
  void prepare(Job* job);
  void start_segment(Job* job, std::unique_lock<std::mutex>* lock);
  void open_segment(Job* job);
  void finish(Job* job) {
    job->state = JobState::Done;
    ++finished_;
  }
  void open_outputs(Job* job, const Segment& segment);
  void open_output(Job* job, const Output& output, OutputMemory* memory);
  void fail_output(Job* job, const Output& output, int32_t why, const std::string& text);
  bool may_start(const PythonWork& work) const;
  int32_t maker_of(int32_t value) const;
  void segment_done(Job* job, std::unique_lock<std::mutex>* lock);
  bool issue(Job* job);           // after the last device segment; false: the batch has failed as a whole
  bool settle(Job* job);          // waits for the device; false: rows go through the device segments once more
  void fetch_inputs(Job* job);    // back to the host
  void wait_for_device();         // a thread's work
  void fail_all(Job* job, const std::string& text, int32_t why = kFatal);
  void fail_all(Job* job, const std::exception& error);
  RowEnd run_row(Job* job, int64_t row, size_t position, std::unique_ptr<RowContext>* context);
  bool run_step(Job* job, int64_t row, int32_t index, RowContext* context, bool* park, std::string* text);
  // One call of the step's kernel per frame of a video (engine_frames.cpp).
  Outcome run_frames(const Call& video, int32_t index, int64_t frames, RowContext* context) const;
  void add_error(Job* job, RowError error);
  std::unique_ptr<RowContext> take_context();

  std::shared_ptr<const Plan> plan_;
  const int thread_count_;
  const std::unique_ptr<gpu::Place> place_;
  std::shared_ptr<BlockPool> pool_, device_pool_;
  std::mutex mutex_, closing_, issuing_;
  std::condition_variable job_done_, python_ready_, device_ready_;
  std::deque<Job*> issued_;                         // batches that the device works on, oldest first
  std::atomic<int64_t> pending_{0};                 // runnable jobs and resumed rows, readable without the lock
  std::deque<Job*> runnable_;                       // native segments with unclaimed rows, oldest first
  std::vector<std::atomic<int64_t>> row_ns_;        // what a row takes lately, per segment; 0: not known
  std::deque<std::unique_ptr<Parked>> resumed_;
  std::deque<PythonWork> python_;
  std::vector<std::unique_ptr<RowContext>> contexts_;
  std::vector<std::shared_ptr<std::atomic<uint64_t>[]>> step_clocks_;  // of all contexts
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> idle_;
  std::vector<std::thread> workers_;
  std::atomic<bool> closed_{false};
  std::atomic<int> finished_{0};
  uint64_t sequence_ = 0;
  uint64_t turn_ = 1;                               // the job whose ordered segments may run
  int parked_ = 0;                                  // rows that wait for Python
  const int most_parked_;
  bool python_served_ = false;                      // a thread is taking Python work
  std::vector<Sleeper*> asleep_;                    // workers that wait for work
  bool looking_ = false;                            // one of them looks for some before it sleeps
};

}  // namespace stoker
