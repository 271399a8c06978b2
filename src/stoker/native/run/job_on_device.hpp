// SPDX-License-Identifier: Apache-2.0
// Device part of a batch: its memory, the descriptors of its rows, and the launches that they become.
#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "gpu/device_resources.hpp"
#include "gpu/idle_threads.hpp"

namespace stoker {
struct Plan;
struct Job;
}  // namespace stoker

namespace stoker::gpu {

class JobOnDevice : public RowMemory {
 public:
  JobOnDevice(const DeviceResources& resources, const Plan& plan);
  ~JobOnDevice() override;

  // Call before the batch's first file is read. `threads` will read files; `held`: the batch stays on the host after
  // that.
  void reading(int threads, bool held);
  // Prepare for another batch: from now on `follow` may be called for it. Does not call the driver.
  void expect() noexcept { followed_.clear(); }
  // Start the batch, with the streams of the calls since `expect`. Nothing of the last batch may be in use.
  void begin(int64_t rows);
  // Allocate the descriptors of a segment's rows.
  void open(const std::vector<int32_t>& steps);
  // Return a row's zeroed descriptor. Only for the thread that describes the row: a cache line that another core has
  // just written is slow to write.
  uint8_t* slot(int32_t step, int64_t row);
  // Return zeroed descriptors for all frames of a row, one after the other, for a step that runs frame by frame.
  uint8_t* frame_slots(int32_t step, int64_t row, int64_t frames);
  size_t slot_bytes(int32_t step) { return on(step).slot_bytes; }
  void described(int32_t step, int64_t row) { on(step).active[flag_of(row)] = 1; }
  // Return the address to which the kernel of a step on the device writes a row's count. Read it with `count` after
  // `await`.
  Address count_address(int32_t value, int64_t row) const;
  bool has_described(int32_t step, int64_t row) { return on(step).active[flag_of(row)] != 0; }
  int32_t count(int32_t step, int64_t row) { return on(step).counts_host[row]; }

  // Return `view` with its device address. Host values outside of the upload arena are copied into it.
  View on_device(const View& view);
  // Return the same for a constant value (`Value::is_constant`). Rows that see the same memory share one copy.
  View constant_on_device(int32_t value, const View& view);
  uint8_t* allocate_host(size_t bytes) override { return upload_.take(bytes).host; }
  // Return host memory for data that are read before the batch goes to the device. Device memory for them is allocated
  // later.
  uint8_t* allocate_host_only(size_t bytes) { return upload_.take_host(bytes); }
  // Return memory for a file; call input_written() when the file has been read. The host must not read the memory from
  // the issue of the batch until `fetch_inputs`.
  uint8_t* allocate_input(size_t bytes) { return inputs_.take(bytes); }
  void input_written(const uint8_t* room) { inputs_.written(room); }
  // Read a part of a file into device memory that the batch has until it is finished. Return its address, or 0 if it is
  // to be read into host memory: it is short, the batch is held, the device has no memory, or FileReads::read is
  // incomplete. `others` may take part. Thread-safe. Throw DeviceFailure.
  Address read_to_device(int descriptor, uint64_t offset, size_t bytes, IdleThreads* others);
  // Start copying the files to the device while rows are being described, after all files have been read.
  bool may_send_early() { return inputs_.may_send_early(); }
  void send_early() noexcept { inputs_.send_early(); }
  Address device_address(const uint8_t* host) const override;
  Address allocate_device(size_t bytes) override { return work_->take(bytes).device; }

  // Deliver an output row that the host computed in memory from allocate_host: it is copied to the device address `to`.
  void deliver(const View& row, Address to);

  // Make the batch's work wait for a consumer's stream, which may still read the memory that the batch writes.
  void follow(uintptr_t stream);

  // Turn the descriptors of a segment into launches. `issue` issues the launches of all segments together.
  void plan_launches(const Plan& plan, const std::vector<int32_t>& steps);
  // Call the libraries whose work comes ahead of the batch's launches; before `issue`.
  void call_ahead();
  // Issue all copies and launches so far; the event `finished_` passes after them.
  void issue();
  // Call after one of the last three functions has thrown. Afterwards nothing of the batch is in flight, and its memory
  // is free.
  void abandon() noexcept;
  void await();
  // Return whether `await` would not wait.
  bool passed() noexcept;
  // Like `await`, for any state of the device; a batch that was not inspected is abandoned.
  void drain() noexcept;
  // Notify the kernels that rows with a descriptor will not be checked: the device has no work for them.
  void abandon_rows() noexcept;
  struct Finding {
    int64_t row;
    int32_t step;
    Verdict verdict;
    std::string error;
  };
  // Return everything that went wrong; call after `await`. Rows that must run again are marked for the CPU.
  std::vector<Finding> inspect(const Plan& plan);
  // For rows that must run again: copy the files back to host memory; current_address() maps old addresses to new ones.
  void fetch_inputs() { inputs_.fetch(); }
  uint8_t* current_address(uint8_t* host) const { return inputs_.current_address(host); }
  void finish();  // the device has no more work for the batch
  bool redone(int64_t row) const { return !redo_.empty() && redo_[static_cast<size_t>(row)]; }

 private:
  void issue_on(WorkStream work_stream);
  void await_files(WorkStream work_stream);
  void drop_files() noexcept;
  struct LibraryCall;
  void issue_call(WorkStream work_stream, LibraryCall& call);
  void finish_calls() noexcept;
  // Flags of neighbouring rows are set by different threads, so they are spread out: a cache line has the flags of
  // eight rows.
  static size_t flag_of(int64_t row) { return static_cast<size_t>(row) * 8; }
  struct OnStep {
    const Kernel* kernel = nullptr;  // owned by the plan, which outlives the job
    bool opened = false;             // for this batch; else `active` and `slots` belong to an earlier batch
    uint8_t* slots = nullptr;
    Address device_slots = 0;
    size_t slot_bytes = 0;
    std::vector<uint8_t> active;  // index: flag_of(row)
    Address report = 0;
    size_t report_bytes = 0;
    uint8_t* report_host = nullptr;
    // Of a step with counted outputs: a number per row, which the host gets with the report.
    bool counts_rows = false;
    Address counts = 0;
    int32_t* counts_host = nullptr;
    // For steps that run frame by frame: the descriptors of all rows' frames, until their number is known.
    bool by_frame = false;
    std::vector<std::vector<uint8_t>> frames;
    std::vector<int64_t> row_of;  // per frame

    int64_t entries(int64_t rows) const { return by_frame ? static_cast<int64_t>(row_of.size()) : rows; }
    bool described(int64_t entry) const { return by_frame || active[flag_of(entry)] != 0; }
    bool any_described(int64_t rows) const {
      for (int64_t entry = 0; entry < entries(rows); ++entry)
        if (described(entry)) return true;
      return false;
    }
  };
  void join_frames(OnStep& step);
  void clear_others(OnStep& step);
  class StepBatch;
  class ForkAt;
  void read_ticks();
  void drop_ticks() noexcept;
  OnStep& on(int32_t step) { return steps_[static_cast<size_t>(step)]; }

  DeviceResources resources_;
  mutable Inputs inputs_;        // files
  mutable Arena upload_;         // all other uploads; a request for a device address allocates device memory
  std::unique_ptr<Arena> work_;  // intermediate results, from the first device segment to the end
  std::vector<OnStep> steps_;
  struct Constant {
    const uint8_t* host = nullptr;  // null: not copied for this batch
    View view;                      // with the device address
  };
  std::mutex copying_constants_;
  std::vector<Constant> constants_;  // by value
  std::vector<int32_t> counted_by_;  // by value: the step whose count it is; -1: none
  std::vector<int32_t> planned_;     // steps with launches, in order
  std::vector<Launch> launches_;
  // Work of a library, to be issued before launch number `before`.
  struct LibraryCall {
    size_t before;
    std::function<uintptr_t(Fork&)> work;  // or
    std::function<uintptr_t()> ahead;
    uintptr_t stream = 0;  // stream of work that was issued ahead
  };
  std::vector<LibraryCall> calls_;
  std::vector<uintptr_t> called_;  // libraries' streams with work for the batch, until the batch is issued
  struct End {
    size_t launches, calls;
  };
  std::vector<End> ends_;     // ends of each planned step's launches and calls
  std::vector<Event> ticks_;  // timing events of a measured batch: before its launches, and after those of each step
  std::vector<uint8_t> redo_;
  int64_t rows_ = 0;
  bool judged_ = true;  // no row has got a descriptor after the last inspection
  Event finished_ = nullptr;
  WorkStream work_stream_ = 0;  // stream of the batch's last work
  bool issued_ = false;
  std::vector<uintptr_t> followed_;
  struct Delivery {
    const uint8_t* from;
    Address to;
    size_t bytes;
  };
  bool is_held_ = false;
  std::mutex reading_files_;
  std::unique_ptr<Arena> files_;  // device memory of files
  std::vector<Event> copied_;     // copies to it that the batch's work must wait for
  std::mutex delivering_;
  std::vector<Delivery> deliveries_;
};

}  // namespace stoker::gpu
