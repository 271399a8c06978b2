// SPDX-License-Identifier: Apache-2.0
// Order of library work among the launches of a batch: forks, joins, early issue, and failures. The device records its
// calls. Prints faults, and nothing without one.
#include <cstdio>
#include <functional>
#include <string>

#include "plan/plan.hpp"
#include "run/job_on_device.hpp"

using namespace stoker;
using namespace stoker::gpu;

namespace {

bool good = true;
std::string notes;
void note(const std::string& text) { notes += (notes.empty() ? "" : ", ") + text; }

void expect(const std::string& wanted, const char* what) {
  if (notes != wanted) std::printf("%s: expected '%s', got '%s'\n", what, wanted.c_str(), notes.c_str());
  good &= notes == wanted;
  notes.clear();
}

constexpr uintptr_t kStreamHandle = 5, kOwn = 77, kAhead = 88;

// Null device with named streams.
class Recorder : public Device {
 public:
  int number() const override { return -1; }
  std::string name() const override { return "recorder"; }
  int architecture() const override { return 0; }
  void enter() override {}
  void* current() noexcept override { return nullptr; }
  void leave(void*) noexcept override {}
  uint8_t* pin(size_t bytes) override { return null_->pin(bytes); }
  void unpin(uint8_t* memory) noexcept override { null_->unpin(memory); }
  Address allocate(size_t bytes) override { return null_->allocate(bytes); }
  void free(Address memory) noexcept override { null_->free(memory); }
  void copy_in(Address to, const uint8_t* from, size_t bytes) override { null_->copy_in(to, from, bytes); }
  Event record_copies() override { return nullptr; }
  WorkStream next_work_stream() override { return 0; }
  void await_on(WorkStream, Event event) override {
    if (notes_events) note("wait for " + std::to_string(reinterpret_cast<uintptr_t>(event)));
  }
  void send(WorkStream, Address to, const uint8_t* from, size_t bytes) override { copy_in(to, from, bytes); }
  void copy_out(WorkStream work_stream, uint8_t* to, Address from, size_t bytes) override {
    null_->copy_out(work_stream, to, from, bytes);
  }
  void move(WorkStream work_stream, Address to, Address from, size_t bytes) override {
    null_->move(work_stream, to, from, bytes);
  }
  void launch(WorkStream, const Launch& l) override { note("launch " + l.function->name); }
  Event record(WorkStream) override {
    if (notes_events) note("record " + std::to_string(++events_));
    return reinterpret_cast<Event>(events_);
  }
  bool passed(Event) override { return true; }
  void await(Event) override {}
  void forget(Event) noexcept override {}
  Event tick(WorkStream work_stream) override { return null_->tick(work_stream); }
  double elapsed_ns(Event from, Event to) override { return null_->elapsed_ns(from, to); }
  void forget_tick(Event event) noexcept override { null_->forget_tick(event); }
  void follow(WorkStream, uintptr_t stream) override { note("follow " + std::to_string(stream)); }
  void drain(WorkStream) noexcept override { note("drain"); }
  uintptr_t stream_of(WorkStream) override { return kStreamHandle; }
  void fork(WorkStream, uintptr_t stream) override { note("fork " + std::to_string(stream)); }
  uintptr_t make_stream(gpu::Priority) override { return 0; }
  void finish(uintptr_t stream) override { note("finish " + std::to_string(stream)); }
  void drop_stream(uintptr_t) noexcept override {}
  void launch_on(uintptr_t, const Launch& l) override { note("launch " + l.function->name); }
  void copy_in_on(uintptr_t, Address to, const uint8_t* from, size_t bytes) override { copy_in(to, from, bytes); }
  Event record_on(uintptr_t) override { return nullptr; }
  uintptr_t order_stream() override { return 0; }
  void order_after(uintptr_t) override {}
  std::shared_ptr<Module> load(const void* image, size_t bytes, const std::string& name) override {
    return null_->load(image, bytes, name);
  }
  uint64_t free_bytes() override { return null_->free_bytes(); }
  bool notes_events = false;

 private:
  uintptr_t events_ = 0;
  std::shared_ptr<Device> null_ = open_null();
};

class Step : public gpu::Kernel {
 public:
  using Work = std::function<void(Batch&)>;
  explicit Step(Work work) : work_(std::move(work)) {}
  stoker::Ports ports() const override { return {.kernel = "step"}; }
  size_t slot_bytes() const override { return 16; }
  Outcome run(const Call&) const override { return Outcome::Ok; }
  void launch(Batch& batch) const override { work_(batch); }

 private:
  Work work_;
};

void launch(Batch& batch, const Function& function) {
  Launch l;
  l.function = &function;
  batch.launch(l);
}

const Function a{"a"}, b{"b"}, c{"c"}, d{"d"};

struct Job {
  Plan plan;
  DeviceResources resources;
  std::unique_ptr<JobOnDevice> on_device;
  std::vector<int32_t> steps;

  explicit Job(const std::vector<Step::Work>& works, bool notes_events = false) {
    for (const Step::Work& work : works) {
      stoker::Step step;
      step.kernel = std::make_shared<Step>(work);
      step.on_device = step.kernel->on_device();
      steps.push_back(static_cast<int32_t>(plan.steps.size()));
      plan.steps.push_back(std::move(step));
    }
    const auto recorder = std::make_shared<Recorder>();
    recorder->notes_events = notes_events;
    resources.device = recorder;
    resources.order = std::make_shared<BatchOrder>(resources.device);
    resources.backing_pool = std::make_shared<DeviceBackingPool>(resources.device, resources.quota);
    resources.work_arenas = std::make_shared<ArenaPool>(resources.device, resources.quota);
    resources.pinned_pool = std::make_shared<PinnedPool>(resources.device);
    on_device = std::make_unique<JobOnDevice>(resources, plan);
  }
  void run(bool has_file = false) {
    on_device->begin(1);
    if (has_file) on_device->input_written(on_device->allocate_input(16));
    on_device->open(steps);
    for (const int32_t s : steps) {
      on_device->slot(s, 0);
      on_device->described(s, 0);
    }
    on_device->plan_launches(plan, steps);
    on_device->call_ahead();
    on_device->issue();
    on_device->await();
    on_device->finish();
  }
};

// A batch waits for the last launch of the one before to begin. Batches with files or of one launch do not.
void batches_in_order() {
  Job job({[](Batch& batch) {
            launch(batch, a);
            launch(batch, b);
          }},
          true);
  job.run();
  expect("launch a, record 1, launch b, record 2", "the first batch");
  job.run(true);
  expect("launch a, launch b, record 3", "a batch with a file");
  job.run();
  expect("wait for 1, launch a, record 4, launch b, record 5", "a batch after another one");
  job.run();
  expect("wait for 4, launch a, record 6, launch b, record 7", "and the next one");
  Job alone({[](Batch& batch) { launch(batch, a); }}, true);
  for (int i = 1; i < 3; ++i) {
    alone.run();
    expect("launch a, record " + std::to_string(i), "a batch of one launch");
  }
}

uintptr_t on_own_stream(Fork& fork) {
  fork.to(kOwn);
  note("library");
  return kOwn;
}

uintptr_t on_the_batchs_stream(Fork& fork) {
  note("library");
  return fork.stream();
}

uintptr_t ahead() {
  note("ahead");
  return kAhead;
}

void in_order() {
  Job job({[](Batch& batch) {
             launch(batch, a);
             batch.call(on_own_stream);
             launch(batch, b);
           },
           [](Batch& batch) {
             launch(batch, c);
             batch.call_ahead(ahead);
             launch(batch, d);
           },
           [](Batch& batch) { batch.call(on_the_batchs_stream); }});
  const char* const wanted =
      "ahead, launch a, fork 77, library, follow 77, launch b, launch c, follow 88, launch d, library";
  for (int i = 0; i < 3; ++i) {  // of the second batch, time is measured
    job.run();
    expect(wanted, "a batch");
  }
}

void failures() {
  const auto failing = [](Fork& fork) -> uintptr_t {
    fork.to(kOwn);
    throw DeviceFailure("no plan for this size");
  };
  Job job({[&](Batch& batch) {
    launch(batch, a);
    batch.call_ahead(ahead);
    batch.call(failing);
    launch(batch, b);
  }});
  try {
    job.run();
    note("no failure");
  } catch (const DeviceFailure& failure) {
    note(failure.what());
    job.on_device->abandon();
  }
  expect("ahead, launch a, follow 88, fork 77, no plan for this size, finish 88, finish 77, drain",
         "a call that fails");
}

}  // namespace

int main() {
  in_order();
  batches_in_order();
  failures();
  return good ? 0 : 1;
}
