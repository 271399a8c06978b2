// SPDX-License-Identifier: Apache-2.0
// What a batch has on a device: its memory, the descriptions of its rows, and the launches that they become.
#pragma once
#include <functional>
#include <mutex>
#include <vector>

#include "gpu_inputs.hpp"

namespace stoker {
struct Plan;
struct Job;
}  // namespace stoker

namespace stoker::gpu {

// The device's time in each step of a plan, from one batch in `kEvery`: events between all batches would keep the
// device from running the end of one launch beside the beginning of the next.
class StepTimes {
 public:
  static constexpr uint64_t kEvery = 16;
  bool wanted() { return batches_.fetch_add(1, std::memory_order_relaxed) % kEvery == 1; }  // not of the first
  void add(const std::vector<int32_t>& steps, const std::vector<double>& ns, int64_t rows);
  // Nanoseconds of each of `steps` steps, over all batches that were measured, and how many rows these had.
  std::pair<int64_t, std::vector<double>> total(size_t steps) const;

 private:
  std::atomic<uint64_t> batches_{0};
  mutable std::mutex mutex_;
  std::vector<double> ns_;
  int64_t rows_ = 0;
};

// Everything that a plan with device steps runs on.
struct Place {
  std::shared_ptr<Device> device;
  std::shared_ptr<Account> account = std::make_shared<Account>();  // of all that the pipeline takes of its memory
  std::shared_ptr<StepTimes> times = std::make_shared<StepTimes>();
  std::shared_ptr<ArenaPool> works;  // what batches work in; the engine's
  std::shared_ptr<Needed> uploads = std::make_shared<Needed>();
  std::shared_ptr<Behind> behind;    // what they send; the engine's
  std::shared_ptr<Locked> locked;    // where files are read; the engine's
  std::shared_ptr<Needed> inputs = std::make_shared<Needed>();
};

class JobOnDevice : public RowMemory {
 public:
  JobOnDevice(const Place& place, const Plan& plan);
  ~JobOnDevice() override;

  // Before the batch's first file is read: how many threads will, and whether it is to be held on the host then.
  void reading(int threads, bool held);
  // A new batch begins; nothing of the last one is in use any more.
  void begin(int64_t rows);
  // Room for the descriptions of a segment's rows.
  void open(const std::vector<int32_t>& steps);
  // A row's, zeroed. By the thread that describes the row: what another core has just written is slow to write again.
  uint8_t* slot(int32_t step, int64_t row);
  // Zeroed descriptions of all frames of a row, one after the other, of a step that runs frame by frame.
  uint8_t* frame_slots(int32_t step, int64_t row, int64_t frames);
  size_t slot_bytes(int32_t step) { return on(step).slot_bytes; }
  void described(int32_t step, int64_t row) { on(step).active[flag_of(row)] = 1; }

  // Where the device finds a value: `view` with its device address. Host values that are not in the mirrored arena are
  // copied there.
  View on_device(const View& view);
  uint8_t* host_room(size_t bytes) override { return upload_.take(bytes).host; }
  // The same for what is read before the batch goes to the device, which then has memory for it or not.
  uint8_t* room_ahead(size_t bytes) { return upload_.take_host(bytes); }
  // Memory for a file, and that it has been read. From when the batch is issued until `fetch_inputs`, what is there is
  // not to be read by the host.
  uint8_t* input_room(size_t bytes) { return inputs_.take(bytes); }
  void input_written(const uint8_t* room) { inputs_.written(room); }
  // All files have been read, and the device may have them while rows describe themselves.
  bool may_send_early() { return inputs_.may_send_early(); }
  void send_early() noexcept { inputs_.send_early(); }
  Address behind(const uint8_t* host) const override;
  Address device_room(size_t bytes) override { return work_->take(bytes).device; }

  // A row of an output that the host made, in host_room: it is copied to where the device would have written it.
  void deliver(const View& made, Address to);

  // The work has to follow a consumer's stream: memory that it writes may still be read there.
  void follow(uintptr_t stream);

  // Turns the described steps of a segment into launches. They are issued by `issue`, with those of other segments.
  void plan_launches(const Plan& plan, const std::vector<int32_t>& steps);
  // Has libraries issue what is theirs; before `issue`.
  void call_libraries();
  // Issues all copies and launches so far; `finished` will be passed after them.
  void issue();
  // After one of the last three has thrown: nothing of the batch is under way after this, and its memory is free.
  void abandon() noexcept;
  void await();
  void rest() noexcept;  // as `await`, whatever state the device is in
  struct Finding {
    int64_t row;
    int32_t step;
    Verdict verdict;
    std::string error;
  };
  // After `await`: what is not as it should be. Rows to be made again are marked for the CPU.
  std::vector<Finding> inspect(const Plan& plan);
  // For rows that are to be made again: files are in host memory again, and `now_at` says where what lay at `host` is.
  void fetch_inputs() { inputs_.fetch(); }
  uint8_t* now_at(uint8_t* host) const { return inputs_.now_at(host); }
  void finish();  // the device has nothing more to do for the batch
  bool redone(int64_t row) const { return !redo_.empty() && redo_[static_cast<size_t>(row)]; }

 private:
  void issue_on(Lane lane);
  void finish_calls() noexcept;
  // Flags of neighbouring rows are apart, since other threads set them: a cache line has those of eight rows.
  static size_t flag_of(int64_t row) { return static_cast<size_t>(row) * 8; }
  struct OnStep {
    uint8_t* slots = nullptr;
    Address device_slots = 0;
    size_t slot_bytes = 0;
    std::vector<uint8_t> active;  // at flag_of(row)
    Address report = 0;
    size_t report_bytes = 0;
    uint8_t* report_host = nullptr;
    // Of a step that runs frame by frame: what its rows' frames said, until all are there and their number is known.
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
  void read_ticks();
  void drop_ticks() noexcept;
  OnStep& on(int32_t step) { return steps_[static_cast<size_t>(step)]; }

  Place place_;
  mutable Inputs inputs_;  // files
  mutable Arena upload_;   // all else that is sent; who asks for an address there has the device's memory taken
  std::unique_ptr<Arena> work_;  // from the first device segment to the end
  std::vector<OnStep> steps_;
  std::vector<int32_t> planned_;  // steps with launches, in order
  std::vector<Launch> launches_;
  std::vector<std::function<uintptr_t()>> calls_;
  std::vector<uintptr_t> called_;  // libraries' streams that work for the batch, until that is issued
  std::vector<size_t> ends_;      // where each planned step's launches end
  std::vector<Event> ticks_;      // of a batch that is measured: before its launches, and after each step's
  std::vector<uint8_t> redo_;
  int64_t rows_ = 0;
  Event finished_ = nullptr;
  Lane lane_ = 0;  // of what was issued last
  bool issued_ = false;
  std::vector<uintptr_t> followed_;
  struct Delivery {
    const uint8_t* from;
    Address to;
    size_t bytes;
  };
  std::mutex delivering_;
  std::vector<Delivery> deliveries_;
};

}  // namespace stoker::gpu
