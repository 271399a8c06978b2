// SPDX-License-Identifier: Apache-2.0
// The run loop, worker pools and recipes under ThreadSanitizer (tests/native/tsan.sh), without Python: several consumers
// that prefetch, parked rows, batches on a (null) device with rows that fall back, threads that do not start, and a stop at
// any moment. Prints faults, and nothing without one. run_threads [SECONDS [SEED]]
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "gpu/gpu.hpp"
#include "recipe/recipe.hpp"
#include "run/engine.hpp"

using namespace stoker;

namespace {

using Random = std::mt19937;

std::atomic<int> wrong{0};

void expect(bool good, const char* what) {
  if (!good && wrong++ < 10) std::printf("%s\n", what);
}

// ---- kernels ----

// Bytes of a row: mostly few, so that memory is released after large rows.
int64_t size_of_row(uint64_t key) { return key % 601 == 600 ? 3 << 20 : 16 + static_cast<int64_t>(key % 97); }
int64_t sum_of_row(uint64_t key) { return static_cast<int64_t>(key % 251) * size_of_row(key); }
bool is_parked(uint64_t key) { return key % 5 == 0; }
bool is_made_again(uint64_t key) { return key % 7 == 0; }

// Returns the bytes of a row, whose size the kernel finds while it runs.
class Make final : public Kernel {
 public:
  Ports ports() const override { return {.kernel = "make", .out = {port_of(DType::U8, 1)}}; }
  bool allocates() const override { return true; }
  Outcome run(const Call& call) const override {
    const uint64_t key = call.job.keys[static_cast<size_t>(call.row)];
    View& out = *call.out[0];
    out.shape[0] = size_of_row(key);
    out.data = call.allocator->get(static_cast<size_t>(out.shape[0]));
    out.set_contiguous_strides();
    std::memset(out.data, static_cast<int>(key % 251), static_cast<size_t>(out.shape[0]));
    call.work[0].get(static_cast<size_t>(out.shape[0]));
    return Outcome::Ok;
  }
};

int64_t sum_of(const uint8_t* data, int64_t count) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += data[i];
  return sum;
}

// Returns the sum of a row's bytes. Some rows fall back to Python.
class Sum final : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "sum", .in = {port_of(DType::U8, 1)}, .out = {port_of(DType::I64, 1)}};
  }
  Outcome run(const Call& call) const override {
    if (is_parked(call.job.keys[static_cast<size_t>(call.row)])) return Outcome::Python;
    const int64_t sum = sum_of(call.in[0]->data, call.in[0]->shape[0]);
    std::memcpy(call.out[0]->data, &sum, sizeof sum);
    return Outcome::Ok;
  }
};

// Returns the sum of two numbers.
class Add final : public Kernel {
 public:
  Ports ports() const override {
    const PortRule number = port_of(DType::I64, 1);
    return {.kernel = "add", .in = {number, number}, .out = {number}};
  }
  Outcome run(const Call& call) const override {
    int64_t a, b;
    std::memcpy(&a, call.in[0]->data, sizeof a);
    std::memcpy(&b, call.in[1]->data, sizeof b);
    a += b;
    std::memcpy(call.out[0]->data, &a, sizeof a);
    return Outcome::Ok;
  }
};

struct Slot {
  gpu::Address from, to;
  int64_t count, again;
};

// Returns the sum, on a device. Some rows fall back to the CPU.
class SumOnDevice final : public gpu::Kernel {
 public:
  Ports ports() const override {
    PortRule bytes = port_of(DType::U8, 1);
    bytes.on_host = true;
    return {.kernel = "sum", .in = {bytes}, .out = {port_of(DType::I64, 1)}};
  }
  size_t slot_bytes() const override { return sizeof(Slot); }
  Outcome run(const Call& call) const override {
    if (call.on_host) {
      const int64_t sum = sum_of(call.host_in[0]->data, call.host_in[0]->shape[0]);
      View& out = *call.out[0];
      out.data = call.memory->allocate_host(sizeof sum);
      out.device = false;
      std::memcpy(out.data, &sum, sizeof sum);
      return Outcome::OnHost;
    }
    const bool again = is_made_again(call.job.keys[static_cast<size_t>(call.row)]);
    *reinterpret_cast<Slot*>(call.slot) = {reinterpret_cast<gpu::Address>(call.in[0]->data),
                                           reinterpret_cast<gpu::Address>(call.out[0]->data), call.in[0]->shape[0],
                                           again};
    return Outcome::Ok;
  }
  void launch(gpu::Batch& batch) const override {
    gpu::Launch launch;
    launch.function = &function_;
    batch.report(1);
    batch.launch(launch.with({batch.device_slots(), static_cast<uint64_t>(batch.rows())}));
  }
  gpu::Verdict judge(const uint8_t*, int64_t, const uint8_t* slot, std::string*) const override {
    return reinterpret_cast<const Slot*>(slot)->again ? gpu::Verdict::Redo : gpu::Verdict::Good;
  }

 private:
  static void emulate(const gpu::Launch* launch) {
    const auto* slots = reinterpret_cast<const Slot*>(launch->argument[0]);
    for (uint64_t i = 0; i < launch->argument[1]; ++i) {
      if (!slots[i].to || slots[i].again) continue;
      const int64_t sum = sum_of(reinterpret_cast<const uint8_t*>(slots[i].from), slots[i].count);
      std::memcpy(reinterpret_cast<void*>(slots[i].to), &sum, sizeof sum);
    }
  }
  gpu::Function function_{"sum", reinterpret_cast<void*>(&emulate)};
};

// ---- plans ----

Value a_value(DType dtype, Storage storage, int32_t slot = 0) {
  Value value{};
  value.dtype = dtype;
  value.rank = 1;
  value.storage = storage;
  value.slot = slot;
  return value;
}

Step a_step(std::shared_ptr<const Kernel> kernel, std::vector<int32_t> in, int32_t out) {
  Step step;
  step.kernel = std::move(kernel);
  step.in = std::move(in);
  step.out = {out};
  step.scalars.code = {{ScalarOp::Const, 0}};
  step.scalars.consts = {1};
  step.extents = {{0}};
  return step;
}

Output one_number(int32_t value, bool device) {
  Output output{};
  output.value = value;
  output.fixed = true;
  output.device = device;
  output.shape = {1};
  return output;
}

Segment a_segment(SegmentKind kind, std::vector<int32_t> steps, std::vector<int32_t> opens = {}) {
  Segment segment;
  segment.kind = kind;
  segment.steps = std::move(steps);
  segment.opens = std::move(opens);
  return segment;
}

enum Number : int32_t { kBytes, kSum, kMore, kResult, kAcross };
constexpr int32_t kPythonStep = 2;

// Bytes -> sum (some rows by Python) -> a number from Python, in order -> the sum of both.
std::shared_ptr<const Plan> a_plan() {
  auto plan = std::make_shared<Plan>();
  plan->values = {a_value(DType::U8, Storage::Scratch), a_value(DType::I64, Storage::Batch),
                  a_value(DType::I64, Storage::Batch), a_value(DType::I64, Storage::Output),
                  a_value(DType::U8, Storage::Batch)};
  plan->steps = {a_step(std::make_shared<Make>(), {}, kBytes), a_step(std::make_shared<Sum>(), {kBytes}, kSum),
                 a_step(nullptr, {}, kMore), a_step(std::make_shared<Add>(), {kSum, kMore}, kResult),
                 a_step(std::make_shared<Make>(), {}, kAcross)};
  plan->steps[kPythonStep].ordered = true;
  plan->segments = {a_segment(SegmentKind::Native, {0, 1, 4}), a_segment(SegmentKind::Python, {2}),
                    a_segment(SegmentKind::Native, {3}, {0})};
  plan->outputs = {one_number(kResult, false)};
  plan->buffers = 1;
  plan->finish();
  return plan;
}

std::shared_ptr<const Plan> a_plan_on_device() {
  auto plan = std::make_shared<Plan>();
  plan->values = {a_value(DType::U8, Storage::Upload), a_value(DType::I64, Storage::Output)};
  plan->steps = {a_step(std::make_shared<Make>(), {}, 0), a_step(std::make_shared<SumOnDevice>(), {0}, 1)};
  plan->segments = {a_segment(SegmentKind::Native, {0}), a_segment(SegmentKind::Device, {1}, {0})};
  plan->outputs = {one_number(1, true)};
  plan->finish();
  return plan;
}

// ---- users of an engine ----

struct Shared {
  explicit Shared(std::unique_ptr<Engine> e, bool device) : engine(std::move(e)), on_device(device) {}
  std::unique_ptr<Engine> engine;
  const bool on_device;
  std::atomic<uint64_t> next_key{0};
  std::atomic<int64_t> delivered{0};
};

int64_t expected_of(const Shared& shared, uint64_t key) { return sum_of_row(key) + (shared.on_device ? 0 : 1); }

Job* a_job(Shared& shared, int64_t rows) {
  Job* job = shared.engine->acquire(rows);
  const uint64_t first = shared.next_key.fetch_add(static_cast<uint64_t>(rows));
  for (int64_t r = 0; r < rows; ++r) job->keys[static_cast<size_t>(r)] = first + static_cast<uint64_t>(r);
  std::fill(job->epochs.begin(), job->epochs.end(), 0);
  return job;
}

void check(Shared& shared, Job* job) {
  expect(job->errors.empty(), "a row has failed");
  const OutputMemory& memory = job->outputs[0];
  for (int64_t r = 0; r < job->rows; ++r) {
    int64_t found;
    std::memcpy(&found, memory.data + memory.offsets[static_cast<size_t>(r)], sizeof found);
    expect(found == expected_of(shared, job->keys[static_cast<size_t>(r)]), "a row is not what its key says");
  }
  shared.delivered += job->rows;
}

// Runs the rows and segments that need Python. False: there was none.
void do_python(Engine& engine, PythonWork work) {
  Job* job = work.job;
  if (work.parked) {
    const int64_t sum = sum_of_row(job->keys[static_cast<size_t>(work.parked->row)]);
    std::memcpy(job->row(work.parked->row)[kSum].data, &sum, sizeof sum);
  } else {
    const int64_t shape[1] = {1}, one = 1;
    for (int64_t r = 0; r < job->rows; ++r)
      std::memcpy(engine.allocate_value(job, r, kMore, nullptr, shape)->data, &one, sizeof one);
  }
  engine.finish_python(std::move(work));
}

void serve_python(Shared& shared, bool rows_only) {
  PythonWork work;
  bool closed = false;
  while (!closed)
    if (shared.engine->next_python(&work, 0.05, rows_only, &closed)) do_python(*shared.engine, std::move(work));
}

// Keeps some batches in flight. Ends when the engine is closed.
void consume(Shared& shared, uint32_t seed) {
  Random random(seed);
  Engine& engine = *shared.engine;
  std::deque<Job*> queue;
  const size_t depth = 1 + random() % 4;
  while (!engine.closed()) {
    while (queue.size() < depth) {
      Job* job = a_job(shared, static_cast<int64_t>(random() % 24));
      const bool held = shared.on_device && random() % 3 == 0;
      job->held = held;
      for (bool started = false; !started;) {
        try {
          engine.submit(job);
          started = true;
        } catch (const ThreadStartFailed&) { thread_starts_left = -1; }
      }
      if (held) engine.admit(job);
      queue.push_back(job);
    }
    Job* job = queue.front();
    WaitResult found = WaitResult::Timeout;
    while (found == WaitResult::Timeout || found == WaitResult::Python) found = engine.wait(job, 0.05);
    if (found == WaitResult::Closed) return;
    check(shared, job);
    queue.pop_front();
    engine.release(job);
  }
}

// Runs batches on the caller's thread.
void run_here(Shared& shared, uint32_t seed) {
  Random random(seed);
  Engine& engine = *shared.engine;
  while (!engine.closed()) {
    Job* job = a_job(shared, 1 + static_cast<int64_t>(random() % 4));
    engine.begin(job);
    PythonWork work;
    while (!engine.advance(job, &work)) do_python(engine, std::move(work));
    check(shared, job);
    engine.release(job);
  }
}

void watch(Shared& shared) {
  while (!shared.engine->closed()) {
    expect(shared.engine->scratch_bytes() < (size_t{1} << 32), "more working memory than there can be");
    shared.engine->step_times();
    shared.engine->device_times();
    shared.engine->device_bytes();
    shared.engine->pinned_bytes();
    shared.engine->finished();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int64_t run_engine(Random& random, bool on_device) {
  std::unique_ptr<gpu::DeviceResources> resources;
  if (on_device) {
    resources = std::make_unique<gpu::DeviceResources>();
    resources->device = gpu::open_null();
  }
  const int threads = 1 + static_cast<int>(random() % 5);
  Shared shared(std::make_unique<Engine>(on_device ? a_plan_on_device() : a_plan(), threads, std::move(resources)),
                on_device);
  thread_starts_left = random() % 2 ? -1 : static_cast<int64_t>(random() % static_cast<uint32_t>(threads + 1));
  std::vector<std::thread> users;
  for (int i = 0; i < 2; ++i) users.emplace_back(consume, std::ref(shared), random());
  users.emplace_back(run_here, std::ref(shared), random());
  users.emplace_back(watch, std::ref(shared));
  if (!on_device)
    for (const bool rows_only : {false, true}) users.emplace_back(serve_python, std::ref(shared), rows_only);
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
  std::vector<std::thread> closing;
  for (int i = 0; i < 2; ++i) closing.emplace_back([&shared] { shared.engine->close(); });
  for (std::thread& thread : closing) thread.join();
  for (std::thread& thread : users) thread.join();
  thread_starts_left = -1;
  return shared.delivered;
}

// ---- recipes ----

constexpr int64_t kSide = 4, kImage = kSide * kSide * 3;

struct Batch {
  std::vector<uint8_t> pixels, output;
  std::shared_ptr<recipe::RecipeBatch> order = std::make_shared<recipe::RecipeBatch>();
};

// Mirrors images, resizes them to twice their size and back by nearest pixels, and stores them.
std::unique_ptr<Batch> a_batch(Random& random) {
  auto batch = std::make_unique<Batch>();
  const int64_t count = 1 + static_cast<int64_t>(random() % 12);
  batch->pixels.resize(static_cast<size_t>(count * kImage));
  for (uint8_t& value : batch->pixels) value = static_cast<uint8_t>(random());
  batch->output.resize(batch->pixels.size() + 8);
  recipe::RecipeBatch& order = *batch->order;
  const auto op = [](recipe::Op which) { return static_cast<double>(which); };
  order.starts = {0};
  for (int64_t i = 0; i < count; ++i) {
    const double image = static_cast<double>(i * kImage);
    const std::vector<double> steps = {op(recipe::Op::Pixels),
                                       -1,
                                       kSide,
                                       kSide,
                                       3,
                                       0,
                                       0,
                                       0,
                                       kSide,
                                       kSide,  // image 0
                                       op(recipe::Op::Transpose),
                                       0,
                                       0,
                                       op(recipe::Op::Transpose),
                                       1,
                                       0,  // mirrored, and back
                                       op(recipe::Op::Resize),
                                       2,
                                       2 * kSide,
                                       2 * kSide,
                                       0,
                                       kSide,
                                       0,
                                       kSide,
                                       2,
                                       0,
                                       op(recipe::Op::StorePixels),
                                       2,
                                       0,
                                       image};
    order.numbers.insert(order.numbers.end(), steps.begin(), steps.end());
    order.starts.push_back(static_cast<int64_t>(order.numbers.size()));
    order.sources.push_back({batch->pixels.data() + i * kImage, static_cast<size_t>(kImage)});
  }
  order.outputs = {{batch->output.data(), batch->output.size()}};
  order.status.assign(static_cast<size_t>(count), recipe::Status::Pending);
  order.why.resize(static_cast<size_t>(count));
  order.remaining = count;
  return batch;
}

void check(const Batch& batch) {
  for (const recipe::Status status : batch.order->status)
    expect(status == recipe::Status::Done, "a recipe did not run");
  expect(std::equal(batch.pixels.begin(), batch.pixels.end(), batch.output.begin()), "a recipe gave other pixels");
}

// True: the worker pool was closed.
bool give_and_wait(recipe::WorkerPool& pool, std::atomic<bool>& closed, Batch& batch, Random& random) {
  for (bool submitted = false; !submitted;) {
    try {
      pool.submit(batch.order);
      submitted = true;
    } catch (const ThreadStartFailed&) {
      expect(batch.order->remaining == batch.order->count(), "a refused order has run");
      thread_starts_left = -1;
    }
  }
  if (random() % 3 == 0) pool.prioritize(batch.order);
  while (!pool.wait(batch.order, 0.02))
    if (closed) return true;
  return batch.order->remaining != 0;
}

int64_t run_crew(Random& random) {
  const int threads = 1 + static_cast<int>(random() % 4);
  recipe::WorkerPool pool(threads);
  std::atomic<bool> closed{false};
  std::atomic<int64_t> finished{0};
  thread_starts_left = random() % 2 ? -1 : static_cast<int64_t>(random() % static_cast<uint32_t>(threads));
  std::vector<std::unique_ptr<Batch>> kept(3);  // until the pool is closed: threads may be at work in them
  std::vector<std::thread> users;
  for (auto& last : kept)
    users.emplace_back([&, seed = random()] {
      Random own(seed);
      for (bool over = false; !over;) {
        last = a_batch(own);
        over = give_and_wait(pool, closed, *last, own);
        if (over) return;
        check(*last);
        ++finished;
      }
    });
  users.emplace_back([&, seed = random()] {  // and on a thread of its own
    Random own(seed);
    while (!closed) {
      const auto batch = a_batch(own);
      std::thread helper([&] { recipe::materialize_all(*batch->order); });
      recipe::materialize_all(*batch->order);
      helper.join();
      check(*batch);
    }
  });
  users.emplace_back([&, seed = random()] {  // and the number of threads changes
    Random own(seed);
    while (!closed) {
      pool.set_active(static_cast<int>(own() % 6));
      std::this_thread::sleep_for(std::chrono::microseconds(own() % 500));
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
  std::vector<std::thread> closing;
  for (int i = 0; i < 2; ++i) closing.emplace_back([&pool] { pool.close(); });
  for (std::thread& thread : closing) thread.join();
  closed = true;
  for (std::thread& thread : users) thread.join();
  thread_starts_left = -1;
  return finished;
}

// ---- memory that threads share ----

void run_pool(Random& random) {
  const auto pool = std::make_shared<BlockPool>(3);
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i)
    users.emplace_back([pool, seed = random()] {
      Random own(seed);
      for (int k = 0; k < 300; ++k) {
        const size_t bytes = own() % 50 == 0 ? 1 << 20 : 64 + own() % 4096;
        const BlockPool::Block block = pool->take(bytes);
        std::memset(block.data, k, bytes);
      }
    });
  for (std::thread& user : users) user.join();
}

// The first thread opens the driver.
void open_driver() {
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) users.emplace_back([] { gpu::count_cuda(); });
  for (std::thread& user : users) user.join();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 20;
  Random random(argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1);
  ::alarm(static_cast<unsigned>(20 * seconds) + 120);  // what stands still is killed
  open_driver();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int rounds = 0;
  int64_t rows = 0, rows_on_device = 0, batches = 0;
  for (; rounds == 0 || std::chrono::steady_clock::now() < end; ++rounds) {
    rows += run_engine(random, false);
    rows_on_device += run_engine(random, true);
    batches += run_crew(random);
    run_pool(random);
  }
  std::printf("%d rounds: %lld rows, %lld on a device, %lld batches of recipes; %d wrong\n", rounds,
              static_cast<long long>(rows), static_cast<long long>(rows_on_device), static_cast<long long>(batches),
              wrong.load());
  return wrong ? 1 : 0;
}
