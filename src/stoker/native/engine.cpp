// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "float_mode.hpp"
#include "philox.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker {

namespace {

constexpr int64_t kRowAlign = 64;

constexpr double kMaxBytes = 1ull << 40;  // a declared size above this is a mistake, not a request
constexpr int kMinParked = 8;

// A short look before sleeping: waking a thread costs more than a small batch takes.
template <class F>
void spin_until(F done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  while (!done() && std::chrono::steady_clock::now() < end) {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
}

// NaN is no extent; what no memory can hold stays a number that can be multiplied without overflow as a double.
int64_t extent_of(double x) { return x > 0 ? static_cast<int64_t>(std::fmin(x, 0x1p62)) : 0; }

double bytes_of(DType dtype, const int64_t* shape, int64_t rank) {
  double bytes = static_cast<double>(size_of(dtype));
  for (int64_t i = 0; i < rank; ++i) bytes *= static_cast<double>(shape[i]);
  return bytes;
}

// Memory that the device gets, for kernels that learn its size while they run.
class UploadRoom final : public Room {
 public:
  explicit UploadRoom(gpu::JobOnDevice* job) : job_(job) {}
  uint8_t* get(size_t bytes) override { return job_->host_room(bytes); }

 private:
  gpu::JobOnDevice* job_;
};

constexpr const char* kTooLarge = "the output would take more than 2**40 bytes";
std::string no_memory(const std::bad_alloc& error) {
  const auto* limit = dynamic_cast<const gpu::LimitReached*>(&error);
  return limit ? limit->what() : "there is not enough memory";
}

template <class T>
void fit(std::vector<T>* v, size_t n) {
  if (n > v->capacity()) count_allocation(n * sizeof(T));
  v->resize(n);
}

}  // namespace

// ---- Engine: jobs ----

Engine::Engine(std::shared_ptr<const Plan> plan, int threads, std::unique_ptr<gpu::Place> place)
    : plan_(std::move(plan)), thread_count_(threads), place_(std::move(place)),
      pool_(std::make_shared<BlockPool>(2 * plan_->outputs.size() + 1)),
      device_pool_(place_ ? std::make_shared<BlockPool>(2 * plan_->outputs.size() + 1, place_.get()) : nullptr),
      most_parked_(std::max(kMinParked, 2 * threads)) {
  if (place_) place_->works = std::make_shared<gpu::ArenaPool>(place_->device, place_->account);
}

Engine::~Engine() {
  const gpu::Visit here = visit();
  close();
  jobs_.clear();
}

Job* Engine::acquire(int64_t rows) {
  const gpu::Visit here = visit();
  Job* job = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!idle_.empty()) {
      job = idle_.back();
      idle_.pop_back();
    } else {
      jobs_.push_back(std::make_unique<Job>());
      job = jobs_.back().get();
    }
  }
  const size_t n = static_cast<size_t>(rows);
  job->plan = plan_.get();
  job->rows = rows;
  fit(&job->keys, n);
  fit(&job->epochs, n);
  fit(&job->epoch_keys, n);
  fit(&job->indices, static_cast<size_t>(plan_->readers));
  for (auto& column : job->indices) fit(&column, n);
  fit(&job->values, n * plan_->values.size());
  fit(&job->batch_memory, plan_->values.size());
  fit(&job->outputs, plan_->outputs.size());
  for (OutputMemory& o : job->outputs) o.supplied = false;
  job->failed.assign(n, 0);
  job->failing.assign(n, 0);
  job->errors.clear();
  job->segment = 0;
  job->held = job->waiting = false;
  job->resumed.reset();
  if (place_) {
    if (!job->on_device) job->on_device = std::make_unique<gpu::JobOnDevice>(*place_, *plan_);
    job->on_device->begin(rows);
  }
  return job;
}

void Engine::release(Job* job) {
  for (OutputMemory& o : job->outputs) o.block = BlockPool::Block{};
  std::lock_guard<std::mutex> hold(mutex_);
  job->state = JobState::Idle;
  idle_.push_back(job);
}

void Engine::prepare(Job* job) {
  for (int64_t r = 0; r < job->rows; ++r)
    job->epoch_keys[r] = r && job->epochs[r] == job->epochs[r - 1] ? job->epoch_keys[r - 1]
                                                                   : philox::epoch_key(job->seed, job->epochs[r]);
  for (size_t v = 0; v < plan_->values.size(); ++v) {
    const Value& value = plan_->values[v];
    if (value.where == Where::Batch && job->batch_memory[v].size() < static_cast<size_t>(job->rows))
      fit(&job->batch_memory[v], static_cast<size_t>(job->rows));
  }
  job->state = JobState::Running;
}

void Engine::submit(Job* job) {
  if (job->state != JobState::Idle) return;
  const gpu::Visit here = visit();
  std::unique_lock<std::mutex> lock(mutex_);
  if (workers_.empty() && !closed_) {
    for (int i = 0; i < thread_count_; ++i) workers_.emplace_back([this] { work(); });
    if (place_) workers_.emplace_back([this] { wait_for_device(); });
  }
  prepare(job);
  job->inlined = false;
  job->sequence = ++sequence_;
  start_segment(job, &lock);
}

void Engine::admit(Job* job) {
  const gpu::Visit here = visit();
  std::unique_lock<std::mutex> lock(mutex_);
  job->held = false;
  if (!std::exchange(job->waiting, false) || closed_) return;
  start_segment(job, &lock);
}

void Engine::begin(Job* job) {
  const gpu::Visit here = visit();
  prepare(job);
  job->inlined = true;
  open_segment(job);
}

bool Engine::advance(Job* job, PythonWork* work) {
  const FloatMode mode;
  const gpu::Visit here = visit();
  while (job->segment < plan_->segments.size()) {
    if (plan_->segments[job->segment].runs == Runs::Python) {
      work->job = job;
      work->parked.reset();
      return false;
    }
    while (job->resumed || job->next_row < job->rows) {
      std::unique_ptr<RowContext> context;
      size_t position = 0;
      int64_t row;
      if (job->resumed) {
        row = job->resumed->row;
        position = job->resumed->position;
        context = std::move(job->resumed->context);
        job->resumed.reset();
      } else {
        row = job->next_row++;
        context = take_context();
      }
      if (run_row(job, row, position, &context) == RowEnd::Parked) {
        work->job = job;
        work->parked = std::move(job->resumed);
        return false;
      }
      give_context(std::move(context));
    }
    const bool ends = ++job->segment == plan_->segments.size();
    if (ends && place_ && issue(job) && !settle(job)) job->segment = plan_->device_begin;
    open_segment(job);
  }
  job->state = JobState::Done;
  return true;
}

// ---- Engine: segments and rows ----

// Called with the lock; drops it while memory is allocated.
void Engine::start_segment(Job* job, std::unique_lock<std::mutex>* lock) {
  for (;;) {
    if (job->segment == plan_->segments.size()) {
      job->state = JobState::Done;
      job_done_.notify_all();
      return;
    }
    if (job->held && plan_->segments[job->segment].runs == Runs::Device) {
      job->waiting = true;
      return;
    }
    lock->unlock();
    open_segment(job);
    lock->lock();
    if (plan_->segments[job->segment].runs == Runs::Python) {
      python_.push_back(PythonWork{job, nullptr});
      python_ready_.notify_one();
      job_done_.notify_all();  // a consumer that waits may have to start the Python thread
      return;
    }
    job->remaining = job->rows;
    if (job->rows > 0) {
      const auto later = std::find_if(runnable_.begin(), runnable_.end(),
                                      [job](const Job* other) { return other->sequence > job->sequence; });
      runnable_.insert(later, job);
      ++pending_;
      if (job->rows == 1) work_ready_.notify_one();
      else work_ready_.notify_all();
      return;
    }
    ++job->segment;
  }
}

void Engine::open_segment(Job* job) {
  job->next_row = 0;
  job->order.clear();
  std::copy(job->failing.begin(), job->failing.end(), job->failed.begin());
  if (job->segment == plan_->segments.size()) return;
  const Segment& segment = plan_->segments[job->segment];
  open_outputs(job, segment);
  if (segment.runs != Runs::Device) return order_rows(segment, job);
  try {
    job->on_device->open(segment.steps);
  } catch (const std::bad_alloc& error) {
    fail_all(job, no_memory(error));
  } catch (const std::exception& error) {
    fail_all(job, error.what());
  }
}

void Engine::open_outputs(Job* job, const Segment& segment) {
  fit(&job->registers, plan_->registers + 1);
  for (const int32_t index : segment.opens) {
    const Output& output = plan_->outputs[index];
    try {
      open_output(job, output, &job->outputs[index]);
    } catch (const std::bad_alloc& error) {
      for (int64_t r = 0; r < job->rows; ++r) add_error(job, {r, maker_of(output.value), kFatal, {}, no_memory(error)});
    }
  }
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
    const double bytes = bytes_of(value.dtype, shape, rank);
    if (bytes > kMaxBytes) {
      add_error(job, {r, maker_of(output.value), -1, {}, kTooLarge});
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
  if (memory->supplied) return;
  memory->block = (output.device ? device_pool_ : pool_)->take(static_cast<size_t>(used));
  memory->data = memory->block.data;
  if (output.device && memory->block.stream != BlockPool::kNoStream) job->on_device->follow(memory->block.stream);
  memory->block.stream = BlockPool::kNoStream;
}

// The step that makes a value, for messages.
int32_t Engine::maker_of(int32_t value) const {
  for (size_t s = 0; s < plan_->steps.size(); ++s)
    for (const int32_t out : plan_->steps[s].out)
      if (out == value) return static_cast<int32_t>(s);
  return -1;
}

bool Engine::active(Job* job, int64_t row, const Step& step) const {
  const View* values = job->row(row);
  for (const Guard& g : step.guards)
    if ((read_element(values[g.value], 0) != 0) != g.wanted) return false;
  return true;
}

View* Engine::place(Job* job, int64_t row, int32_t value, RowContext* context, const int64_t* shape) {
  const Value& info = plan_->values[value];
  View& v = job->row(row)[value];
  v.dtype = info.dtype;
  v.rank = info.rank;
  int64_t bytes = size_of(info.dtype);
  for (int i = 0; i < info.rank; ++i) {
    v.shape[i] = shape[i];
    bytes *= shape[i];
  }
  v.set_contiguous_strides();
  v.device = info.where == Where::Device;
  switch (info.where) {
    case Where::Scratch: v.data = context->buffers[info.slot].get(bytes); break;
    case Where::Batch: v.data = job->batch_memory[value][row].get(bytes); break;
    case Where::Output:
      v.data = job->outputs[info.slot].data + job->outputs[info.slot].offsets[row];
      v.device = job->outputs[info.slot].device;
      break;
    case Where::Upload: v.data = job->on_device->host_room(static_cast<size_t>(bytes)); break;
    case Where::Device: v.data = reinterpret_cast<uint8_t*>(job->on_device->device_room(static_cast<size_t>(bytes))); break;
    default: break;
  }
  return &v;
}

// Returns false when the row cannot go on (failed), sets `park` when Python must run, for the reason in `text`.
bool Engine::run_step(Job* job, int64_t row, int32_t index, RowContext* context, bool* park, std::string* text) {
  const Step& step = plan_->steps[index];
  View* values = job->row(row);
  double* registers = context->registers.data();
  if (evaluate(step.scalars, values, 0, registers) >= 0) {
    add_error(job, {row, index, -1, {}, "an argument has fewer elements than are used"});
    return false;
  }
  for (const Check& check : step.checks) {
    if (registers[check.condition] != 0) continue;
    RowError error{row, index, check.message, {}, {}};
    for (const int32_t r : check.values) error.values.push_back(registers[r]);
    add_error(job, std::move(error));
    return false;
  }

  View* out[8];
  View* in[64];
  const bool aliases = step.kernel->aliases(), allocates = step.kernel->allocates();
  for (size_t o = 0; o < step.out.size(); ++o) {
    out[o] = &values[step.out[o]];
    const Value& info = plan_->values[step.out[o]];
    out[o]->dtype = info.dtype;
    out[o]->rank = info.rank;
    out[o]->device = false;
    if (aliases || (allocates && o == 0)) continue;
    int64_t shape[kMaxRank];
    for (int i = 0; i < info.rank; ++i) shape[i] = extent_of(registers[step.extents[o][i]]);
    if (bytes_of(info.dtype, shape, info.rank) > kMaxBytes) {
      add_error(job, {row, index, -1, {}, kTooLarge});
      return false;
    }
    place(job, row, step.out[o], context, shape);
  }
  for (size_t i = 0; i < step.in.size(); ++i) in[i] = &values[step.in[i]];

  const size_t nparams = step.params.size();
  double* params = context->params.data();
  for (size_t i = 0; i < nparams; ++i) params[i] = registers[step.params[i]];
  Room* own = nullptr;
  UploadRoom upload(job->on_device.get());
  if (allocates) {
    const Value& info = plan_->values[step.out[0]];
    if (info.where == Where::Upload) own = &upload;
    else own = info.where == Where::Batch ? &job->batch_memory[step.out[0]][row] : &context->buffers[info.slot];
  }
  Call call{params, in, out, *job, row, context->work, own, text, &context->held};
  View there[64];
  const View* in_there[64];
  if (step.on_device) {
    for (size_t i = 0; i < step.in.size(); ++i) {
      there[i] = job->on_device->on_device(*in[i]);
      in_there[i] = &there[i];
    }
    call.in = in_there;
    call.host_in = in;
    call.slot = job->on_device->slot(index, row);
    call.memory = job->on_device.get();
    call.on_host = job->on_device->redone(row);
  }
  uint8_t* const given = step.out.empty() ? nullptr : out[0]->data;
  Outcome outcome = Outcome::Ok;
  if (step.frames < 0) {
    outcome = step.kernel->run(call);
  } else {
    outcome = run_frames(call, index, extent_of(registers[step.frames]), context);
  }
  if (outcome == Outcome::Error) {
    add_error(job, {row, index, -1, {}, std::move(*text)});
    return false;
  }
  if (step.on_device && outcome == Outcome::Ok) job->on_device->described(index, row);
  const bool made_here = step.on_device && !out[0]->device;  // or is about to be, by Python
  if (made_here && plan_->values[step.out[0]].where == Where::Output)
    job->on_device->deliver(*out[0], reinterpret_cast<gpu::Address>(given));
  *park = outcome == Outcome::Python;
  return true;
}

Engine::RowEnd Engine::run_row(Job* job, int64_t row, size_t position, std::unique_ptr<RowContext>* context) {
  const Segment& segment = plan_->segments[job->segment];
  for (size_t i = position; i < segment.steps.size() && !job->failing[row]; ++i) {
    const Step& step = plan_->steps[segment.steps[i]];
    if (!step.guards.empty() && !active(job, row, step)) continue;
    bool park = false;
    std::string text;
    const auto start = std::chrono::steady_clock::now();
    bool going_on = false;
    try {
      going_on = run_step(job, row, segment.steps[i], context->get(), &park, &text);
    } catch (const std::bad_alloc& error) {
      add_error(job, {row, segment.steps[i], -1, {}, no_memory(error)});
    } catch (const gpu::DeviceFailure& failure) {
      add_error(job, {row, segment.steps[i], -1, {}, failure.what()});
    }
    const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - start;
    (*context)->step_ns[segment.steps[i]].fetch_add(static_cast<uint64_t>(spent.count()), std::memory_order_relaxed);
    if (!going_on) break;
    if (park) {
      auto parked = std::make_unique<Parked>();
      parked->job = job;
      parked->row = row;
      parked->position = i;
      parked->reason = std::move(text);
      const auto& params = (*context)->params;
      parked->params.assign(params.begin(), params.begin() + static_cast<int64_t>(step.params.size()));
      (*context)->held.file.close();
      parked->context = std::move(*context);
      job->inlined ? void(job->resumed = std::move(parked)) : [&] {
        std::lock_guard<std::mutex> hold(mutex_);
        ++parked_;
        python_.push_back(PythonWork{job, std::move(parked)});
        python_ready_.notify_one();
        job_done_.notify_all();
      }();
      return RowEnd::Parked;
    }
  }
  (*context)->held.file.close();
  return RowEnd::Finished;
}

void Engine::row_done(Job* job) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (--job->remaining == 0) segment_done(job, &lock);
}

// Called with the lock.
void Engine::segment_done(Job* job, std::unique_lock<std::mutex>* lock) {
  if (++job->segment == plan_->segments.size() && place_) {
    lock->unlock();
    const bool issued = issue(job);
    lock->lock();
    if (issued) {
      issued_.push_back(job);
      device_ready_.notify_one();
      return;
    }
  }
  start_segment(job, lock);
}

// ---- Engine: the device ----

bool Engine::issue(Job* job) {
  try {
    for (size_t i = plan_->device_begin; i < plan_->segments.size(); ++i)
      job->on_device->plan_launches(*plan_, plan_->segments[i].steps);
    job->on_device->call_libraries();
    std::lock_guard<std::mutex> one_batch_at_a_time(issuing_);
    job->on_device->issue();
    return true;
  } catch (const std::bad_alloc& error) {
    fail_all(job, no_memory(error));
  } catch (const gpu::DeviceFailure& failure) {
    fail_all(job, failure.what());
  }
  return false;
}

bool Engine::settle(Job* job) {
  try {
    job->on_device->await();
  } catch (const gpu::DeviceFailure& failure) {
    fail_all(job, failure.what());
    return true;
  }
  bool again = false;
  for (const gpu::JobOnDevice::Finding& finding : job->on_device->inspect(*plan_)) {
    again |= finding.verdict == gpu::Verdict::Redo;
    if (finding.verdict == gpu::Verdict::Error) add_error(job, {finding.row, finding.step, -1, {}, finding.error});
  }
  if (!again) job->on_device->finish();
  return !again;
}

void Engine::wait_for_device() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    device_ready_.wait(lock, [this] { return closed_ || !issued_.empty(); });
    if (closed_) return;
    Job* job = issued_.front();
    issued_.pop_front();
    lock.unlock();
    const bool done = settle(job);
    lock.lock();
    if (!done) job->segment = plan_->device_begin;
    start_segment(job, &lock);
  }
}

void Engine::move_on_device(const std::vector<Move>& moves, uintptr_t after) {
  gpu::Device& device = *place_->device;
  const gpu::Visit here(&device);
  const gpu::Lane lane = device.next_lane();
  if (after != BlockPool::kNoStream) device.follow(lane, after);
  for (const Move& m : moves)
    if (m.bytes) device.move(lane, m.to, m.from, m.bytes);
  const gpu::Event done = device.record(lane);
  device.await(done);
  device.forget(done);
}

void Engine::fail_all(Job* job, const std::string& text) {
  const int32_t step = plan_->segments[plan_->device_begin].steps.front();
  for (int64_t r = 0; r < job->rows; ++r)
    if (!job->failing[r]) add_error(job, {r, step, kFatal, {}, text});
}

void Engine::add_error(Job* job, RowError error) {
  std::lock_guard<std::mutex> hold(mutex_);
  job->failing[error.row] = 1;
  job->errors.push_back(std::move(error));
}

void Engine::fail_row(Job* job, int64_t row, int32_t step, std::string text) {
  add_error(job, {row, step, -1, {}, std::move(text)});
}

std::unique_ptr<RowContext> Engine::take_context() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!contexts_.empty()) {
      auto context = std::move(contexts_.back());
      contexts_.pop_back();
      return context;
    }
  }
  auto context = std::make_unique<RowContext>();
  context->buffers.resize(plan_->buffers);
  context->registers.resize(plan_->registers + 1);
  context->params.resize(plan_->parameters + 1);
  context->step_ns.reset(new std::atomic<uint64_t>[plan_->steps.size()]());
  std::lock_guard<std::mutex> hold(mutex_);
  step_clocks_.push_back(context->step_ns);
  return context;
}

void Engine::give_context(std::unique_ptr<RowContext> context) {
  if (!context) return;
  std::lock_guard<std::mutex> hold(mutex_);
  contexts_.push_back(std::move(context));
}

void Engine::work() {
  const FloatMode mode;
  std::unique_ptr<RowContext> context;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (!closed_ && pending_ == 0) {
      lock.unlock();
      spin_until([this] { return pending_ > 0 || closed_; });
      lock.lock();
    }
    work_ready_.wait(lock, [this] {
      return closed_ || !resumed_.empty() || (!runnable_.empty() && parked_ < most_parked_);
    });
    if (closed_) break;
    Job* job;
    int64_t row;
    size_t position = 0;
    if (!resumed_.empty()) {
      auto parked = std::move(resumed_.front());
      resumed_.pop_front();
      --pending_;
      job = parked->job;
      row = parked->row;
      position = parked->position;
      if (context) contexts_.push_back(std::move(context));
      context = std::move(parked->context);
    } else {
      job = runnable_.front();
      row = job->claim_row();
      if (job->next_row == job->rows) {
        runnable_.pop_front();
        --pending_;
      }
    }
    lock.unlock();
    if (!context) context = take_context();
    if (run_row(job, row, position, &context) == RowEnd::Finished) row_done(job);
    lock.lock();
  }
}

// ---- Engine: waiting and Python ----

Wait Engine::wait(Job* job, double timeout_s) {
  spin_until([&] { return job->state == JobState::Done || closed_; });
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ready = [&] {
    return job->state == JobState::Done || closed_ || (!python_.empty() && !python_served_);
  };
  if (!job_done_.wait_for(lock, std::chrono::duration<double>(timeout_s), ready)) return Wait::Timeout;
  if (job->state == JobState::Done) return Wait::Done;
  return closed_ ? Wait::Closed : Wait::Python;
}

bool Engine::may_start(const PythonWork& work) const {
  return work.parked || !plan_->segments[work.job->segment].ordered || work.job->sequence == turn_;
}

bool Engine::next_python(PythonWork* work, double timeout_s, bool* closed) {
  std::unique_lock<std::mutex> lock(mutex_);
  python_served_ = true;
  auto next = python_.end();
  python_ready_.wait_for(lock, std::chrono::duration<double>(timeout_s), [&] {
    next = std::find_if(python_.begin(), python_.end(), [this](const PythonWork& w) { return may_start(w); });
    return closed_.load() || next != python_.end();
  });
  *closed = closed_;
  if (closed_ || next == python_.end()) return false;
  *work = std::move(*next);
  python_.erase(next);
  return true;
}

void Engine::finish_python(PythonWork work) {
  const gpu::Visit here = visit();
  Job* job = work.job;
  if (work.parked) {
    ++work.parked->position;
    if (job->inlined) {
      job->resumed = std::move(work.parked);
      return;
    }
    std::lock_guard<std::mutex> hold(mutex_);
    resumed_.push_back(std::move(work.parked));
    ++pending_;
    // All: where the number of parked rows held the workers back, there is now a new row to take as well.
    if (parked_-- == most_parked_) work_ready_.notify_all();
    else work_ready_.notify_one();
    return;
  }
  ++job->segment;
  if (job->inlined) return open_segment(job);
  std::unique_lock<std::mutex> lock(mutex_);
  if (job->segment == plan_->ordered_end) {
    turn_ = job->sequence + 1;
    python_ready_.notify_all();
  }
  start_segment(job, &lock);
}

void Engine::close() {
  const gpu::Visit here = visit();
  {
    std::lock_guard<std::mutex> hold(mutex_);
    closed_ = true;
    work_ready_.notify_all();
    job_done_.notify_all();
    python_ready_.notify_all();
    device_ready_.notify_all();
  }
  std::lock_guard<std::mutex> hold(closing_);
  for (std::thread& t : workers_) t.join();
  workers_.clear();
  for (const auto& job : jobs_)
    if (job->on_device) job->on_device->rest();
}

size_t Engine::scratch_bytes() {
  std::lock_guard<std::mutex> hold(mutex_);
  size_t total = 0;
  for (const auto& context : contexts_) {
    for (const Scratch& s : context->buffers) total += s.capacity();
    for (const Scratch& s : context->work) total += s.capacity();
  }
  return total;
}

std::vector<uint64_t> Engine::step_times() {
  std::lock_guard<std::mutex> hold(mutex_);
  std::vector<uint64_t> total(plan_->steps.size());
  for (const auto& clock : step_clocks_)
    for (size_t i = 0; i < total.size(); ++i) total[i] += clock[i].load(std::memory_order_relaxed);
  return total;
}

}  // namespace stoker
