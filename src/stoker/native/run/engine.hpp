// SPDX-License-Identifier: Apache-2.0
// Run loop: jobs (one batch each) go through a plan's segments; worker threads run rows of several jobs concurrently.
//
// A row runs through a whole native segment on one thread, so that the output of a step is still in the cache for the
// next step. A row whose kernel needs Python is parked with its memory and resumed later. The other rows do not wait
// for it, unless enough rows are parked that Python limits the rate. Segments are barriers: a Python segment, or a
// step that reads other rows, starts when all rows have arrived. Python segments with side effects run in the order of
// the batches, for any number of threads and any prefetch depth.
//
// Segments on a GPU come last. The worker threads describe their rows like those of any other segment; then the whole
// batch is issued, and one thread waits for the device. Rows that the device could not compute go through those
// segments once more, with the failed step on the CPU.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/thread.hpp"
#include "plan/plan.hpp"
#include "run/job.hpp"
#include "run/working_memory.hpp"

namespace stoker {

// Work for Python: a whole Python segment of a job, or one parked row.
struct PythonWork {
  Job* job = nullptr;
  std::unique_ptr<Parked> parked;  // null: the job's segment
};

enum class WaitResult : uint8_t { Done, Python, Timeout, Closed };

constexpr const char* kNotFed = "an input of the plan was not fed";

class Engine final : private gpu::IdleThreads {
 public:
  // `resources` are those of the plan's device segments; null if it has none.
  Engine(std::shared_ptr<const Plan> plan, int threads, std::unique_ptr<gpu::DeviceResources> resources = nullptr,
         BatchLimits limits = {});
  ~Engine();

  Job* acquire(int64_t rows);  // returns an idle job for `rows` rows; does not call the driver
  // Release a job after its outputs have been taken. This calls the driver only if the job still has device memory of
  // outputs: see `holds_device_memory`.
  void release(Job* job);
  static bool holds_device_memory(const Job& job);
  // Queue the job. Call this once per job. The first call starts the threads. If one of them cannot start,
  // ThreadStartFailed is thrown and nothing has changed.
  void submit(Job* job);
  // Let a held job enter its device segments. Only then it takes memory for them.
  void admit(Job* job);
  int finished() const { return finished_.load(std::memory_order_relaxed); }  // finished and not yet released
  // Return the largest number of workers that have had rows of native segments together, and count from now on.
  int take_most_working();
  uint64_t device_bytes() const { return resources_ ? resources_->quota->taken.load() : 0; }
  // Page-locked memory for files.
  size_t pinned_bytes() const { return resources_ ? resources_->pinned_bytes() : 0; }
  void begin(Job* job);                      // runs it on the caller's thread (then call `advance`)
  bool advance(Job* job, PythonWork* work);  // true: done; false: run `work`, then call `finish_python`

  WaitResult wait(Job* job, double timeout_s);
  // For threads that run Python work. One of them takes segments; the others take parked rows alone.
  bool next_python(PythonWork* work, double timeout_s, bool rows_only, bool* closed);
  void finish_python(PythonWork work);
  void fail_row(Job* job, int64_t row, int32_t step, std::string text);
  // End a row for which `value` has no memory within the limit of the batch.
  void fail_by_limit(Job* job, int64_t row, int32_t value, const BatchLimitReached& limit) {
    fail_by_limit_at(job, row, producer_of(value), limit);
  }

  // Stop after the rows in flight. Several threads may call it repeatedly; when it returns, nothing writes to memory of
  // the caller any more.
  void close();
  bool closed() const { return closed_.load(); }
  const Plan& plan() const { return *plan_; }
  bool has_device() const { return resources_ != nullptr; }
  std::shared_ptr<gpu::Device> device() const { return resources_ ? resources_->device : nullptr; }
  gpu::Visit visit() const {
    return gpu::Visit(resources_ ? resources_->device.get() : nullptr);
  }  // for threads of the application
  int threads() const { return thread_count_; }
  // Size of the scratch memory of all threads and batches, in use or idle.
  size_t scratch_bytes() const { return memory_.bytes(); }
  // Return the memory of a value that crosses segments or is fed by the caller.
  Scratch& batch_memory(Job* job, size_t value, int64_t row) {
    memory_.fit_rows(job, value);
    return job->batch_memory[value][static_cast<size_t>(row)];
  }
  void give_context(std::unique_ptr<RowContext> context);
  // Return nanoseconds per step, summed over all threads: of the whole step, or of its waits for a disk.
  std::vector<uint64_t> step_times() { return step_times(&StepClock::run_ns); }
  std::vector<uint64_t> disk_waits() { return step_times(&StepClock::disk_wait_ns); }
  // Return the device's nanoseconds per step in the measured batches, and the number of rows of these batches.
  std::pair<int64_t, std::vector<double>> device_times() const {
    const size_t steps = plan_->steps.size();
    return resources_ ? resources_->times->total(steps) : std::pair{int64_t{0}, std::vector<double>(steps)};
  }

  bool active(Job* job, int64_t row, const Step& step) const;
  void leave_out(Job* job, int64_t row, const Step& step) const;
  // Return whether all values that the caller feeds are there for this row.
  bool is_fed(Job& job, int64_t row) const {
    for (const int32_t v : plan_->inputs)
      if (job.row(row)[v].rank < 0) return false;
    return true;
  }
  // Copy within the device's memory, in order, for outputs that are assembled after their batch; returns when the
  // copies are done. `after` is a consumer's stream that may still use the memory.
  struct Move {
    gpu::Address to, from;
    size_t bytes;
  };
  void move_on_device(const std::vector<Move>& moves, uintptr_t after = BlockPool::kNoStream);
  BlockPool::Block allocate_on_device(size_t bytes) {
    const gpu::Visit here = visit();
    return device_pool_->take(bytes);
  }
  // Return memory for a value that a Python segment produces, or that crosses segments.
  View* allocate_value(Job* job, int64_t row, int32_t value, RowContext* context, const int64_t* shape);

 private:
  enum class RowEnd { Finished, Parked };
  // Work of one thread that idle workers take part in.
  struct SharedWork {
    const std::function<void()>* work;
    int helping = 0;  // number of workers in it
    std::condition_variable left;
  };
  void share(const std::function<void()>& work) override;
  void help(std::unique_lock<std::mutex>* lock);  // requires the lock and shared work; runs it without the lock
  void work();
  // Wake one sleeping worker for new work; that worker wakes the next one if work is left. So no more workers
  // wake up than there is work for. Nothing is done if a worker is still spinning.
  void wake_one() {
    if (!asleep_.empty() && !spinning_) wake_last();
  }
  // Wake the worker that fell asleep last: its memory is still in its core's cache, and the others can sleep on.
  void wake_last();
  void wake_all() {
    while (!asleep_.empty()) wake_last();
  }
  struct Sleeper {
    explicit Sleeper(std::unique_ptr<RowContext>* own) : context(own) {}
    std::condition_variable woken;
    bool is_woken = false;
    std::unique_ptr<RowContext>* const context;  // the thread's context, which other threads may trim while it sleeps
  };
  // Release memory that no recent row needed, for sleeping threads; working threads release their own. Requires the
  // lock.
  void trim_idle();
  // Return how many workers may have rows of native segments. A GPU's consumer launches its kernels from a thread that
  // shares caches, memory and Python's lock with the workers: a burst of all of them delays its launches. When the
  // batches before the one in work are finished, few workers are soon enough. Requires the lock.
  int may_work() const;
  // Return whether the remaining work is worth waking another thread.
  bool worth_waking() const;
  // Return how many rows of its segment a thread takes at a time.
  int64_t share_of(const Job& job) const;
  // Run rows that a thread has taken and return the number of finished rows. The others are parked.
  int64_t run_share(Job* job, int64_t first, int64_t count, std::unique_ptr<RowContext>* context);
  int64_t run_resumed(std::unique_ptr<Parked> parked, std::unique_ptr<RowContext>* context);
  // Call this without the lock. Return false if the batch failed as a whole; it is then past its last segment.
  bool begin_on_device(Job* job);
  void prepare(Job* job);
  void start_segment(Job* job, std::unique_lock<std::mutex>* lock);
  void open_segment(Job* job);
  void finish(Job* job) {
    job->state = JobState::Done;
    ++finished_;
  }
  // Do the work of a segment's steps for all rows of a batch together (run/engine_combine.cpp).
  void combine_rows(Job* job, const Segment& segment);
  void combine_rows(Job* job, int32_t index);
  void open_outputs(Job* job, const Segment& segment);
  void open_output(Job* job, const Output& output, OutputMemory* memory);
  // Set the real first extent of a step's counted outputs in a row. Return "" or the error in `count`.
  std::string apply_count(Job* job, int64_t row, const Step& step, int32_t count) const;
  void fail_by_limit_at(Job* job, int64_t row, int32_t step, const BatchLimitReached& limit);
  // Placed outputs (run/engine_placed.cpp).
  void open_placed(Job* job, size_t index);
  // Return the output in whose memory a step allocates its value in this batch; null: in the value's own.
  OutputMemory* output_of_root(Job* job, int32_t value) const;
  // Give the rows of placed outputs their places after a row has run through its segment.
  void place_row(Job* job, int64_t row, const Segment& segment);
  // Bring rows of one shape together, when all rows have run.
  void close_placed(Job* job);
  void fail_output(Job* job, const Output& output, int32_t why, const std::string& text);
  void require_memory(Job* job, const Output& output, const OutputMemory& memory, int64_t bytes);
  bool may_start(const PythonWork& work) const;
  int32_t producer_of(int32_t value) const;
  void begin_python(Job* job, const Segment& segment);
  void segment_done(Job* job, std::unique_lock<std::mutex>* lock);
  bool issue(Job* job);   // after the last device segment; false: the batch has failed as a whole
  bool settle(Job* job);  // waits for the device; false: the rows go through the device segments once more
  bool is_read_by_others(int32_t step) const;
  void take_counts(Job* job);   // applies the counts that the device has written
  void fetch_inputs(Job* job);  // copies the files back to the host
  void wait_for_device();       // main function of the thread that waits for the device
  void fail_all(Job* job, const std::string& text, int32_t why = kFatal);
  void fail_all(Job* job, const std::exception& error);
  using Clock = std::chrono::steady_clock;
  // `clock` is the time at which the thread's work before this row ended, and becomes that of the row's last step: rows
  // that follow one another read the clock once per step.
  RowEnd run_row(Job* job, int64_t row, size_t position, std::unique_ptr<RowContext>* context,
                 Clock::time_point* clock);
  bool run_step(Job* job, int64_t row, int32_t index, RowContext* context, bool* park, std::string* text);
  // Call the step's kernel once per frame of a video (run/engine_frames.cpp).
  Outcome run_frames(const Call& video, int32_t index, int64_t frames, RowContext* context) const;
  // Run the kernel on a row whose extents fit.
  static Outcome run_kernel(const Step& step, const Call& call);
  // Return whether the tensors that the kernel itself has placed are of the planned types and ranks.
  bool as_planned(const Step& step, const View* const* out) const {
    for (size_t o = 0; o < step.out.size(); ++o) {
      const Value& info = plan_->values[static_cast<size_t>(step.out[o])];
      if (out[o]->dtype != info.dtype || out[o]->rank != info.rank) return false;
    }
    return true;
  }
  std::vector<uint64_t> step_times(std::atomic<uint64_t> StepClock::* kind);
  void add_error(Job* job, RowError error);
  std::unique_ptr<RowContext> take_context();

  std::shared_ptr<const Plan> plan_;
  const int thread_count_;
  const std::unique_ptr<gpu::DeviceResources> resources_;
  const BatchLimits limits_;
  WorkingMemory memory_;  // used by the contexts and jobs below
  std::shared_ptr<BlockPool> pool_, device_pool_;
  std::mutex mutex_, issuing_;
  std::condition_variable job_done_, python_ready_, device_ready_;
  std::deque<Job*> issued_;                   // batches in flight on the device, oldest first
  std::atomic<int64_t> pending_{0};           // number of runnable jobs and resumed rows, readable without the lock
  std::deque<Job*> runnable_;                 // native segments with unclaimed rows, oldest first
  std::vector<std::atomic<int64_t>> row_ns_;  // recent time of a row per segment; 0: not known
  // Recent batches of a placed output: bytes, and the share of its root's bytes that they are, in thousandths.
  struct PlacedHistory {
    RecentHighWaterMark bytes;
    std::atomic<uint32_t> share{1000}, batches{0};
  };
  std::vector<PlacedHistory> placed_;
  std::deque<std::unique_ptr<Parked>> resumed_;
  std::deque<SharedWork*> shared_;  // the oldest first
  std::deque<PythonWork> python_;
  std::vector<std::unique_ptr<RowContext>> contexts_;
  std::vector<std::shared_ptr<StepClock[]>> step_clocks_;  // of all contexts
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> idle_;
  ThreadGroup workers_;  // the workers and the thread that waits for the device
  std::atomic<bool> closed_{false};
  std::atomic<int> finished_{0};
  uint64_t sequence_ = 0;
  uint64_t turn_ = 1;                   // sequence number of the job whose ordered segments may run
  int working_ = 0, most_working_ = 0;  // workers that have rows, now and at most
  int parked_ = 0;                      // number of rows that wait for Python
  const int max_parked_;
  bool python_served_ = false;                    // a thread is taking Python work
  std::vector<Sleeper*> asleep_;                  // sleeping workers
  bool spinning_ = false;                         // a worker is spinning before it sleeps
  std::atomic<uint32_t> longer_waits_{0};         // consumers' latest waits for which spinning was too short
  std::atomic<uint32_t> longer_device_waits_{0};  // the same of the thread that waits for the device
  std::atomic<uint32_t> longer_pauses_{0};        // the same of the workers without work
};

}  // namespace stoker
