// SPDX-License-Identifier: Apache-2.0
#include "bind/engine.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/thread.hpp"
#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "gpu/file_reads.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

constexpr long long kMostExact = 1LL << 53;  // doubles have all whole numbers up to it

// Release the GIL only with a device: calls of a GPU's driver may wait for the device, or for a lock whose owner waits
// for the GIL. Without a device these calls take microseconds, while another Python thread would keep the GIL for
// milliseconds.
template <class F>
auto without_gil_on_device(const Engine& e, F&& f) {
  return e.has_device() ? without_gil(f) : f();
}

Job* acquire_rows(Engine& e, const Keys& keys, const Longs& epochs, uint64_t seed, const nb::tuple& indices) {
  const size_t n = keys.shape(0);
  bool fits = epochs.shape(0) == n && indices.size() == static_cast<size_t>(e.plan().readers);
  for (size_t i = 0; fits && i < indices.size(); ++i) fits = nb::cast<Longs>(indices[i]).shape(0) == n;
  if (!fits) throw nb::value_error("one key and epoch per row, one index column per reader");
  Job* job = e.acquire(static_cast<int64_t>(n));
  std::copy(keys.data(), keys.data() + n, job->keys.begin());
  std::copy(epochs.data(), epochs.data() + n, job->epochs.begin());
  job->seed = seed;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Longs column = nb::cast<Longs>(indices[i]);
    std::copy(column.data(), column.data() + n, job->indices[i].begin());
  }
  return job;
}

// Release a job. The GIL is kept if no call of the driver follows, which holds for every batch whose outputs have been
// taken: releasing and taking it again would cost more than the rest of this function.
void release(Engine& e, Job* job) {
  if (Engine::holds_device_memory(*job)) without_gil([&] { e.release(job); });
  else e.release(job);
}

// Job that is released at the end of a call.
class Borrowed {
 public:
  Borrowed(const std::shared_ptr<Engine>& e, Job* job) : box_{e, job} {}
  ~Borrowed() { release(*box_.engine, box_.job); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  JobBox& box() { return box_; }
  // Return false if Python is needed or a row fails; the caller then uses the general path.
  bool run() {
    PythonWork work;
    const bool done = without_gil([&] {
      box_.engine->begin(box_.job);
      return box_.engine->advance(box_.job, &work);
    });
    if (work.parked) box_.engine->give_context(std::move(work.parked->context));
    return done && box_.job->errors.empty();
  }

 private:
  JobBox box_;
};

nb::object take_outputs(JobBox& box) {
  nb::list outputs;
  for (size_t i = 0; i < box.job->outputs.size(); ++i) outputs.append(take_output(box, static_cast<int>(i)));
  return outputs;
}

// Feed row 0: a number, numbers in a tuple as a value of one axis, or an array.
void feed_value(const JobBox& box, int value, nb::handle x) {
  if (PyFloat_Check(x.ptr())) feed_scalar(box, value, 0, PyFloat_AsDouble(x.ptr()));
  else if (PyTuple_Check(x.ptr())) feed_numbers(box, value, 0, nb::borrow<nb::tuple>(x));
  else feed_row(box, value, 0, nb::cast<AnyArray>(x));
}

// Run one row synchronously on this thread, for eager calls.
nb::object run_row(std::shared_ptr<Engine> e, const std::vector<int32_t>& values, const nb::list& data, uint64_t seed) {
  Borrowed borrowed(e, e->acquire(1));
  JobBox& box = borrowed.box();
  box.job->keys[0] = 0;
  box.job->epochs[0] = 0;
  box.job->seed = seed;
  if (data.size() < values.size()) throw nb::value_error("expected data for each value");
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) continue;
    feed_value(box, values[i], data[i]);
  }
  if (!borrowed.run()) return nb::none();
  if (box.job->outputs.size() == 1) return take_row(box, 0);
  nb::list outputs;
  for (size_t i = 0; i < box.job->outputs.size(); ++i) outputs.append(take_row(box, i));
  return nb::tuple(outputs);
}

// Feed a value to all rows: a list and ArrayRows have an array per row, another value serves all rows.
void feed_column(JobBox& box, int value, nb::handle column) {
  Job& job = *box.job;
  const ArrayRows* read = nullptr;
  if (nb::try_cast(column, read) && read) return feed_rows(box, value, *read);
  if (PyList_Check(column.ptr())) {
    const nb::list rows = nb::borrow<nb::list>(column);
    if (static_cast<int64_t>(rows.size()) != job.rows) throw nb::value_error("expected one array per row");
    for (int64_t r = 0; r < job.rows; ++r) feed_row(box, value, r, nb::cast<AnyArray>(rows[static_cast<size_t>(r)]));
    return;
  }
  feed_value(box, value, column);
  job.feed({value, job.row(0)[value], 0});
}

// Run a part of a batch's rows synchronously on this thread, for eager calls; return None as above. Keys begin at `first`.
nb::object run_part(std::shared_ptr<Engine> e, const std::vector<int32_t>& values, const nb::list& data, int64_t rows,
                    uint64_t seed, uint64_t first) {
  if (rows < 1) throw nb::value_error("expected at least one row");
  if (data.size() < values.size()) throw nb::value_error("expected data for each value");
  Borrowed borrowed(e, e->acquire(rows));
  JobBox& box = borrowed.box();
  std::iota(box.job->keys.begin(), box.job->keys.end(), first);
  std::fill(box.job->epochs.begin(), box.job->epochs.end(), 0);
  box.job->seed = seed;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] >= 0) feed_column(box, values[i], data[i]);
  if (!borrowed.run()) return nb::none();
  return take_outputs(box);
}

// Run all rows of a batch.
nb::object run_columns(std::shared_ptr<Engine> e, const std::vector<int32_t>& values, const nb::list& data,
                       int64_t rows, uint64_t seed) {
  return run_part(std::move(e), values, data, rows, seed, 0);
}

// Run a whole batch synchronously on this thread; return None as above.
nb::object run_rows(std::shared_ptr<Engine> e, Keys keys, Longs epochs, uint64_t seed, const nb::tuple& indices) {
  Borrowed borrowed(e, acquire_rows(*e, keys, epochs, seed, indices));
  if (!borrowed.run()) return nb::none();
  return take_outputs(borrowed.box());
}

// Return the values of a list or tuple as numbers, if they are exactly Python's own floats and whole numbers that a
// double has; None for anything else.
nb::object numbers_of(nb::handle values) {
  const bool is_list = PyList_CheckExact(values.ptr());
  if (!is_list && !PyTuple_CheckExact(values.ptr())) return nb::none();
  const nb::object items = is_list ? nb::steal(PyList_AsTuple(values.ptr())) : nb::borrow(values);
  if (!items.is_valid()) throw nb::python_error();
  const Py_ssize_t n = PyTuple_Size(items.ptr());
  nb::list numbers;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const nb::handle item = PyTuple_GetItem(items.ptr(), i);
    if (PyFloat_CheckExact(item.ptr())) {
      numbers.append(item);
      continue;
    }
    if (!PyLong_CheckExact(item.ptr())) return nb::none();
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
    if (overflow || number < -kMostExact || number > kMostExact) return nb::none();
    numbers.append(nb::float_(static_cast<double>(number)));
  }
  return nb::tuple(numbers);
}

void bind_run(nb::module_& m) {
  nb::class_<Engine>(m, "Engine")
      .def(nb::new_([](std::shared_ptr<Plan> plan, int threads, std::shared_ptr<gpu::Device> device,
                       std::shared_ptr<gpu::MemoryQuota> quota, uint64_t max_batch_bytes,
                       uint64_t max_batch_bytes_on_device, std::shared_ptr<gpu::FileReads> file_reads) {
             const auto limit = [](uint64_t bytes) { return bytes ? bytes : BatchLimits::kNone; };
             const BatchLimits limits{limit(max_batch_bytes), limit(max_batch_bytes_on_device)};
             std::unique_ptr<gpu::DeviceResources> resources;
             if (device) {
               resources = std::make_unique<gpu::DeviceResources>();
               resources->device = std::move(device);
               if (quota) resources->quota = std::move(quota);
               resources->file_reads = std::move(file_reads);
             }
             return own_with_threads(new Engine(std::move(plan), threads, std::move(resources), limits));
           }),
           nb::arg("plan"), nb::arg("threads"), nb::arg("device") = nb::none(), nb::arg("quota") = nb::none(),
           nb::arg("max_batch_bytes") = 0, nb::arg("max_batch_bytes_on_device") = 0, nb::arg("file_reads") = nb::none())
      .def("acquire", [](std::shared_ptr<Engine> e, Keys keys, Longs epochs, uint64_t seed,
                         const nb::tuple& indices) { return JobBox{e, acquire_rows(*e, keys, epochs, seed, indices)}; })
      .def("release", [](Engine& e, JobBox& b) { release(e, b.job); })
      .def("submit", [](Engine& e, JobBox& b) { without_gil_on_device(e, [&] { e.submit(b.job); }); })
      .def("admit", [](Engine& e, JobBox& b) { without_gil_on_device(e, [&] { e.admit(b.job); }); })
      .def_prop_ro("device_bytes", &Engine::device_bytes)
      .def_prop_ro("pinned_bytes",
                   [](const Engine& e) { return without_gil_on_device(e, [&] { return e.pinned_bytes(); }); })
      .def("wait",
           [](Engine& e, JobBox& b, double timeout_s) {
             if (b.job->state == JobState::Done) return static_cast<int>(WaitResult::Done);
             return without_gil([&] { return static_cast<int>(e.wait(b.job, timeout_s)); });
           })
      .def("done", [](Engine&, JobBox& b) { return b.job->state == JobState::Done; })
      .def("begin", [](Engine& e, JobBox& b) { without_gil_on_device(e, [&] { e.begin(b.job); }); })
      .def("advance",
           [](std::shared_ptr<Engine> e, JobBox& b) -> nb::object {  // None: done; else the work to do
             PythonWork work;
             if (without_gil([&] { return e->advance(b.job, &work); })) return nb::none();
             return nb::cast(new WorkBox{e, std::move(work)}, nb::rv_policy::take_ownership);
           })
      .def("run_row", &run_row)
      .def("run_columns", &run_columns)
      .def("run_part", &run_part)
      .def("run_rows", &run_rows)
      .def("move_on_device",
           [](Engine& e, const std::vector<std::tuple<uintptr_t, uintptr_t, size_t>>& moves) {
             std::vector<Engine::Move> all;
             for (const auto& [to, from, bytes] : moves) all.push_back({to, from, bytes});
             without_gil([&] { e.move_on_device(all); });
           })
      .def("stack_on_device", &stack_on_device)
      .def(
          "next_python",
          [](std::shared_ptr<Engine> e, double timeout_s, bool rows_only) -> nb::object {
            PythonWork work;
            bool closed = false;
            if (!without_gil([&] { return e->next_python(&work, timeout_s, rows_only, &closed); }))
              return closed ? nb::bool_(false) : nb::bool_(true);
            return nb::cast(new WorkBox{e, std::move(work)}, nb::rv_policy::take_ownership);
          },
          nb::arg("timeout_s"), nb::arg("rows_only") = false)
      .def("finish_python",
           [](Engine& e, WorkBox& w) { without_gil_on_device(e, [&] { e.finish_python(std::move(w.work)); }); })
      .def("close", [](Engine& e) { without_gil([&] { e.close(); }); })
      .def_prop_ro("closed", &Engine::closed)
      .def_prop_ro("finished", &Engine::finished)
      .def("take_most_working", &Engine::take_most_working)
      .def_prop_ro("threads", &Engine::threads)
      .def("step_times", [](Engine& e) { return e.step_times(); })
      .def("disk_waits", &Engine::disk_waits)
      .def("device_times", &Engine::device_times)
      .def_prop_ro("scratch_bytes", &Engine::scratch_bytes);
  m.def("numbers_of", &numbers_of, nb::arg("values").none());
  m.def("gil_acquired", [] { return gil_acquired.load(); });
  m.def("allocations", [] { return large_allocations.load(); });
  nb::exception<ThreadStartFailed>(m, "ThreadStartFailed", PyExc_RuntimeError);
  m.def("fail_thread_starts", [](int64_t after) { thread_starts_left = after; }, nb::arg("after"));
}

}  // namespace

void bind_engine(nb::module_& m) {
  bind_plan(m);
  nb::module_ kernels = m.def_submodule("kernels", "Constructors of the kernels of plans.");
  bind_kernels(kernels, registry::Target::Cpu);
  bind_gpu(m);
  bind_array_rows(m);
  bind_jobs(m);
  bind_run(m);
  bind_random(m);
}

}  // namespace stoker
