// SPDX-License-Identifier: Apache-2.0
// The engine's face to Python. Only the planner and the executor use it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "bind_gpu.hpp"
#include "engine.hpp"
#include "kernels.hpp"
#include "philox.hpp"
#include "stage_gpu.hpp"

namespace nb = nanobind;

namespace stoker {

// ---- element types ----

nb::dlpack::dtype dlpack_of(DType t) {
  using C = nb::dlpack::dtype_code;
  const auto make = [](C code, int bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
  };
  switch (t) {
    case DType::Bool: return make(C::Bool, 8);
    case DType::U8: return make(C::UInt, 8);
    case DType::U16: return make(C::UInt, 16);
    case DType::U32: return make(C::UInt, 32);
    case DType::U64: return make(C::UInt, 64);
    case DType::I8: return make(C::Int, 8);
    case DType::I16: return make(C::Int, 16);
    case DType::I32: return make(C::Int, 32);
    case DType::I64: return make(C::Int, 64);
    case DType::F16: return make(C::Float, 16);
    case DType::BF16: return make(C::Bfloat, 16);
    case DType::F32: return make(C::Float, 32);
    default: return make(C::Float, 64);
  }
}

namespace {

using Ints = std::vector<int32_t>;
using KernelRef = std::shared_ptr<Kernel>;

// Switches between native code and Python, so that a test can count them.
std::atomic<int64_t> gil_acquired{0};

DType dtype_of(nb::dlpack::dtype d) {
  for (int t = 0; t <= static_cast<int>(DType::BF16); ++t) {
    const auto have = dlpack_of(static_cast<DType>(t));
    if (have.code == d.code && have.bits == d.bits && d.lanes == 1) return static_cast<DType>(t);
  }
  throw nb::type_error("this element type is not supported");
}

using Keys = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig>;
using Longs = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig>;
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

View view_of(const AnyArray& a) {
  if (a.ndim() > kMaxRank) throw nb::value_error("expected at most 8 axes");
  View v;
  v.data = static_cast<uint8_t*>(const_cast<void*>(a.data()));
  v.dtype = dtype_of(a.dtype());
  v.rank = static_cast<int32_t>(a.ndim());
  for (int i = 0; i < v.rank; ++i) {
    v.shape[i] = static_cast<int64_t>(a.shape(i));
    v.stride[i] = a.stride(i) * size_of(v.dtype);
  }
  return v;
}

// NumPy has no bfloat16: its arrays have the bits.
nb::dlpack::dtype in_numpy(DType t) { return dlpack_of(t == DType::BF16 ? DType::U16 : t); }

// An array over memory that somebody else keeps; `owner` lives as long as the array.
nb::object array_over(const View& v, nb::handle owner, bool writable) {
  size_t shape[kMaxRank];
  int64_t stride[kMaxRank];
  for (int i = 0; i < v.rank; ++i) {
    shape[i] = static_cast<size_t>(v.shape[i]);
    stride[i] = v.stride[i] / size_of(v.dtype);
  }
  if (writable)
    return nb::cast(nb::ndarray<nb::numpy>(v.data, v.rank, shape, owner, stride, in_numpy(v.dtype)));
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(v.data, v.rank, shape, owner, stride, in_numpy(v.dtype)));
}

ScalarCode scalar_code(const std::vector<std::tuple<int, int, int, int>>& code, std::vector<double> consts) {
  ScalarCode s;
  for (const auto& [op, a, b, c] : code) s.code.push_back({static_cast<ScalarOp>(op), a, b, c});
  s.consts = std::move(consts);
  return s;
}

std::vector<ViewOp> view_ops(const std::vector<std::tuple<int, int, int, int, int, Ints>>& list) {
  std::vector<ViewOp> ops;
  for (const auto& [kind, axis, start, step, extent, values] : list)
    ops.push_back({static_cast<ViewKind>(kind), axis, start, step, extent, values});
  return ops;
}
using ViewOpTuples = std::vector<std::tuple<int, int, int, int, int, Ints>>;

// A job as Python sees it: it keeps the engine (and with it all memory) alive.
struct JobBox {
  std::shared_ptr<Engine> engine;
  Job* job;
};

struct WorkBox {
  std::shared_ptr<Engine> engine;
  PythonWork work;
};

// While the interpreter ends, it ends each thread that asks for the GIL by unwinding its stack. In C++ frames that must
// not throw, that would abort the process; such a thread sleeps instead until the process is gone.
void take_gil(PyThreadState* state) {
  ++gil_acquired;
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;) ::pause();
  }
}

template <class F>
auto without_gil(F f) {
  PyThreadState* const state = PyEval_SaveThread();
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      take_gil(state);
    } else {
      auto result = f();
      take_gil(state);
      return result;
    }
  } catch (...) {
    take_gil(state);
    throw;
  }
}

void bind_plan(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel");
  nb::class_<FileTable>(m, "FileTable")
      .def("__init__",
           [](FileTable* self, const nb::bytes& root, const nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig>& names,
              const Keys& offsets) {
             const uint64_t* ends = offsets.data();
             const size_t n = offsets.shape(0), size = names.shape(0);
             bool fits = n > 0 && ends[0] == 0 && ends[n - 1] == size;
             for (size_t i = 1; fits && i < n; ++i)
               fits = ends[i - 1] < ends[i] && ends[i] <= size && names.data()[ends[i] - 1] == 0;
             if (!fits) throw nb::value_error("expected names with a zero after each, and where each begins and ends");
             new (self) FileTable{std::string(root.c_str(), root.size()),
                                  std::string(reinterpret_cast<const char*>(names.data()), size), {ends, ends + n}};
           })
      .def("__len__", &FileTable::size)
      .def("__getitem__", [](const FileTable& t, size_t i) {
        if (i >= t.size()) throw nb::index_error();
        const std::string path = t.path(i);
        return nb::bytes(path.data(), path.size());
      });
  nb::class_<Plan>(m, "Plan")
      .def(nb::init<>())
      .def("add_value",
           [](Plan& p, int dtype, int rank, int where, int slot) {
             p.values.push_back({static_cast<DType>(dtype), rank, static_cast<Where>(where), slot});
           })
      .def("add_step",
           [](Plan& p, KernelRef kernel, Ints in, Ints out, std::vector<std::tuple<int, int, int, int>> code,
              std::vector<double> consts, Ints params, std::vector<Ints> extents,
              std::vector<std::tuple<int, int, Ints>> checks, std::vector<std::pair<int, bool>> guards, int frames,
              std::vector<uint8_t> framed_in, bool ordered) {
             if (in.size() > 64 || out.size() > kMaxStepOutputs) throw nb::value_error("a step takes at most 64 inputs, 64 outputs");
             Step s;
             s.kernel = std::move(kernel);
             s.in = std::move(in);
             s.out = std::move(out);
             s.scalars = scalar_code(code, std::move(consts));
             s.params = std::move(params);
             s.extents = std::move(extents);
             for (auto& [condition, message, values] : checks) s.checks.push_back({condition, message, values});
             for (auto& [value, wanted] : guards) s.guards.push_back({value, wanted});
             s.frames = frames;
             s.framed_in = std::move(framed_in);
             s.ordered = ordered;
             p.steps.push_back(std::move(s));
           },
           nb::arg("kernel").none(), nb::arg("inputs"), nb::arg("outputs"), nb::arg("code"), nb::arg("consts"),
           nb::arg("params"), nb::arg("extents"), nb::arg("checks"), nb::arg("guards"), nb::arg("frames"),
           nb::arg("framed"), nb::arg("ordered"))
      .def("add_segment",
           [](Plan& p, int runs, Ints steps, Ints opens) {
             p.segments.push_back({static_cast<Runs>(runs), std::move(steps), std::move(opens)});
           })
      .def("add_output",
           [](Plan& p, int value, bool fixed, bool device, std::vector<int64_t> shape,
              std::vector<std::tuple<int, int, int, int>> code, std::vector<double> consts, Ints extents) {
             p.outputs.push_back(
                 {value, fixed, device, std::move(shape), scalar_code(code, std::move(consts)), std::move(extents)});
           })
      .def("finish", [](Plan& p, int buffers, int readers) {
        p.buffers = buffers;
        p.readers = readers;
        p.finish();
      });
}

pixel::Program program_of(const nb::list& code, int channels, const Ints& inputs, const Ints& outputs, int uniforms) {
  pixel::Program p;
  for (nb::handle item : code) {
    const nb::tuple t = nb::cast<nb::tuple>(item);
    const auto at = [&t](int i) { return nb::cast<int>(t[i]); };
    pixel::Instr q;
    q.op = static_cast<pixel::Op>(at(0));
    q.type = static_cast<pixel::Type>(at(1));
    q.from = static_cast<pixel::Type>(at(2));
    q.dtype = static_cast<DType>(at(3));
    q.dst = static_cast<uint16_t>(at(4));
    q.a = static_cast<uint16_t>(at(5));
    q.b = static_cast<uint16_t>(at(6));
    q.c = static_cast<uint16_t>(at(7));
    q.uniform = static_cast<uint8_t>(at(8));
    q.port = static_cast<uint8_t>(at(9));
    q.channel = static_cast<uint8_t>(at(10));
    p.code.push_back(q);
  }
  p.channels = channels;
  p.inputs = static_cast<int>(inputs.size());
  p.outputs = static_cast<int>(outputs.size());
  p.uniforms = uniforms;
  if (p.inputs > pixel::kMaxPorts || p.outputs > pixel::kMaxPorts || uniforms > 256)
    throw nb::value_error("a stage takes at most 8 inputs, 8 outputs and 256 uniforms");
  for (int i = 0; i < p.inputs; ++i) p.input_dtype[i] = static_cast<DType>(inputs[i]);
  for (int i = 0; i < p.outputs; ++i) p.output_dtype[i] = static_cast<DType>(outputs[i]);
  std::string why;
  if (!pixel::validate(p, &why)) throw nb::value_error(why.c_str());
  return p;
}

StageSpec stage_spec(int sampler, Ints sampler_params, const nb::list& code, int channels, const Ints& in_dtypes,
                     const Ints& out_dtypes, Ints uniforms, const std::vector<ViewOpTuples>& inputs,
                     const std::vector<ViewOpTuples>& outputs) {
  StageSpec s;
  s.sampler = static_cast<Sampler>(sampler);
  s.sampler_params = std::move(sampler_params);
  s.program = program_of(code, channels, in_dtypes, out_dtypes, static_cast<int>(uniforms.size()));
  s.uniforms = std::move(uniforms);
  for (const auto& ops : inputs) s.inputs.push_back(view_ops(ops));
  for (const auto& ops : outputs) s.outputs.push_back(view_ops(ops));
  return s;
}

// The stage's own kernel comes first, then the sampler's.
StageFunctions stage_functions(Sampler sampler, const std::vector<std::shared_ptr<gpu::Function>>& functions,
                               std::vector<std::pair<int32_t, int32_t>> uniforms) {
  const size_t wanted = sampler == Sampler::None ? 1 : sampler == Sampler::Affine ? 2 : 3;
  const size_t more = sampler == Sampler::Resample ? 3 : 0;  // both passes in one, of some types
  if (functions.size() != wanted && functions.size() != wanted + more)
    throw nb::value_error("a stage takes its kernel and those of its sampler");
  StageFunctions f;
  f.stage = functions[0];
  if (sampler == Sampler::Resample) {
    f.weights = functions[1], f.between = functions[2];
    if (functions.size() > 3) f.tiles = functions[3], f.tiles_down = functions[4], f.words = functions[5];
  }
  if (sampler == Sampler::Affine) f.walk = functions[1];
  f.uniforms = std::move(uniforms);
  return f;
}

void bind_kernels(nb::module_& m) {
  m.def("view", [](const ViewOpTuples& ops, bool may_copy) { return make_view(view_ops(ops), may_copy); });
  m.def("stage",
        [](int sampler, Ints sampler_params, nb::list code, int channels, Ints in_dtypes, Ints out_dtypes,
           Ints uniforms, const std::vector<ViewOpTuples>& inputs, const std::vector<ViewOpTuples>& outputs) {
          return make_stage(stage_spec(sampler, std::move(sampler_params), code, channels, in_dtypes, out_dtypes,
                                       std::move(uniforms), inputs, outputs));
        });
  m.def("gpu_stage",
        [](int sampler, Ints sampler_params, nb::list code, int channels, Ints in_dtypes, Ints out_dtypes,
           Ints uniforms, const std::vector<ViewOpTuples>& inputs, const std::vector<ViewOpTuples>& outputs,
           const std::vector<std::shared_ptr<gpu::Function>>& functions,
           std::vector<std::pair<int32_t, int32_t>> reads) -> KernelRef {
          return make_gpu_stage(stage_spec(sampler, std::move(sampler_params), code, channels, in_dtypes, out_dtypes,
                                           std::move(uniforms), inputs, outputs),
                                stage_functions(static_cast<Sampler>(sampler), functions, std::move(reads)));
        });
  m.def("read", [](std::shared_ptr<FileTable> table, int reader) { return make_read(std::move(table), reader); });
  m.def("lookup", [](const nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig>& table, int reader) {
    return make_lookup({table.data(), table.data() + table.shape(0)}, reader);
  });
  m.def("index", &make_index);
  m.def("peek", [](bool adjust, int format, int scale_log2) {
    return make_peek(adjust, static_cast<jpeg::Format>(format), scale_log2);
  });
  m.def("decode", [](bool adjust, int format, int scale_log2) {
    return make_decode(adjust, static_cast<jpeg::Format>(format), scale_log2);
  });
  const auto spec = [](int distribution, uint32_t draw, bool own_seed, uint64_t seed) {
    return DrawSpec{static_cast<Distribution>(distribution), draw, own_seed, seed};
  };
  m.def("draw", [spec](int d, uint32_t draw, bool own, uint64_t seed) { return make_draw(spec(d, draw, own, seed)); });
  m.def("choice", [spec](uint32_t draw, bool own, uint64_t seed, bool weights) {
    return make_choice(spec(0, draw, own, seed), weights);
  });
  m.def("crop_window", [spec](uint32_t draw, bool own, uint64_t seed, int attempts) {
    return make_crop_window(spec(0, draw, own, seed), attempts);
  });
  m.def("equalize", [](int f, int h, int w, int c) { return make_equalize({f, h, w, c}); });
  m.def("filter", [](int f, int h, int w, int c, int border) { return make_filter({f, h, w, c}, border); });
  m.def("blur", [](int f, int h, int w, int c) { return make_blur({f, h, w, c}); });
  m.def("perspective", [](int f, int h, int w, int c, int s) { return make_perspective({f, h, w, c}, s); });
  m.def("reduce", &make_reduce);
  m.def("scalars", &make_scalars);
  m.def("constant", [](nb::bytes data, std::vector<int64_t> shape) {
    return make_constant(std::string(data.c_str(), data.size()), std::move(shape));
  });
  m.def("select", &make_select);
  m.def("other_row", &make_other_row);
  m.def("python", &make_python);
}

// What a failed row has made by then may have any shape; its output is empty.
void drop_failed(const Job& job, int64_t rank, OutputMemory* memory) {
  for (int64_t r = 0; r < job.rows; ++r) {
    int64_t* shape = memory->shapes.data() + r * rank;
    if (job.failing[static_cast<size_t>(r)]) std::fill(shape, shape + rank, 0);
    if (!std::equal(shape, shape + rank, memory->shapes.data())) memory->dense = false;
  }
}

nb::object take_output(JobBox& box, int index) {
  Job* job = box.job;
  OutputMemory& memory = job->outputs[static_cast<size_t>(index)];
  const Output& output = job->plan->outputs[static_cast<size_t>(index)];
  const Value& value = job->plan->values[static_cast<size_t>(output.value)];
  if (!job->errors.empty() && !output.fixed) drop_failed(*job, value.rank, &memory);
  if (memory.device) return device_output(job, value, memory, box.engine->device());
  auto* block = new BlockPool::Block(std::move(memory.block));
  nb::capsule owner(block, [](void* p) noexcept { delete static_cast<BlockPool::Block*>(p); });
  if (memory.dense && value.rank < kMaxRank) {
    View v;
    v.data = memory.data;
    v.dtype = value.dtype;
    v.rank = value.rank + 1;
    v.shape[0] = job->rows;
    for (int i = 0; i < value.rank; ++i) v.shape[i + 1] = job->rows ? memory.shapes[static_cast<size_t>(i)] : 0;
    v.set_contiguous_strides();
    return array_over(v, owner, true);
  }
  nb::list rows;
  for (int64_t r = 0; r < job->rows; ++r) {
    View v;
    v.data = memory.data + memory.offsets[static_cast<size_t>(r)];
    v.dtype = value.dtype;
    v.rank = value.rank;
    for (int i = 0; i < value.rank; ++i) v.shape[i] = memory.shapes[static_cast<size_t>(r * value.rank + i)];
    v.set_contiguous_strides();
    rows.append(array_over(v, owner, true));
  }
  return rows;
}

// Row 0 of an output as an array of its own.
nb::object take_row(JobBox& box, size_t index) {
  OutputMemory& memory = box.job->outputs[index];
  if (memory.device) return take_output(box, static_cast<int>(index));
  const Value& value = box.job->plan->values[static_cast<size_t>(box.job->plan->outputs[index].value)];
  auto* block = new BlockPool::Block(std::move(memory.block));
  nb::capsule owner(block, [](void* p) noexcept { delete static_cast<BlockPool::Block*>(p); });
  View v;
  v.data = memory.data;
  v.dtype = value.dtype;
  v.rank = value.rank;
  std::copy_n(memory.shapes.data(), value.rank, v.shape);
  v.set_contiguous_strides();
  return array_over(v, owner, true);
}

void feed_scalar(const JobBox& b, int value, int64_t row, double x) {
  auto& memory = b.job->batch_memory[static_cast<size_t>(value)];
  if (memory.size() < static_cast<size_t>(b.job->rows)) memory.resize(static_cast<size_t>(b.job->rows));
  View& v = b.job->row(row)[value];
  v = View{};
  v.dtype = b.job->plan->values[static_cast<size_t>(value)].dtype;
  v.data = memory[static_cast<size_t>(row)].get(8);
  store_scalar(v.data, v.dtype, x);
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

// A job for as long as a call lasts.
class Borrowed {
 public:
  Borrowed(const std::shared_ptr<Engine>& e, Job* job) : box_{e, job} {}
  ~Borrowed() { box_.engine->release(box_.job); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  JobBox& box() { return box_; }
  // False where Python is needed or a row fails; the caller then takes the way that can do both.
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

// One row, at once, on this thread: what an eager call does.
nb::object run_row(std::shared_ptr<Engine> e, const Ints& values, const nb::list& data, uint64_t seed) {
  Borrowed borrowed(e, e->acquire(1));
  JobBox& box = borrowed.box();
  box.job->keys[0] = 0;
  box.job->epochs[0] = 0;
  box.job->seed = seed;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) continue;
    const nb::handle x = data[i];
    if (PyFloat_Check(x.ptr())) feed_scalar(box, values[i], 0, PyFloat_AS_DOUBLE(x.ptr()));
    else box.job->row(0)[values[i]] = view_of(nb::cast<AnyArray>(x));
  }
  if (!borrowed.run()) return nb::none();
  if (box.job->outputs.size() == 1) return take_row(box, 0);
  nb::list outputs;
  for (size_t i = 0; i < box.job->outputs.size(); ++i) outputs.append(take_row(box, i));
  return nb::tuple(outputs);
}

// A whole batch, at once, on this thread; None as above.
nb::object run_rows(std::shared_ptr<Engine> e, Keys keys, Longs epochs, uint64_t seed, const nb::tuple& indices) {
  Borrowed borrowed(e, acquire_rows(*e, keys, epochs, seed, indices));
  if (!borrowed.run()) return nb::none();
  nb::list outputs;
  for (size_t i = 0; i < borrowed.box().job->outputs.size(); ++i)
    outputs.append(take_output(borrowed.box(), static_cast<int>(i)));
  return outputs;
}

void put_value(JobBox& box, int64_t row, int value, const AnyArray& array) {
  const View from = view_of(array);
  const gpu::Visit here = box.engine->visit();
  View* to = box.engine->place(box.job, row, value, nullptr, from.shape);
  const Value& info = box.job->plan->values[static_cast<size_t>(value)];
  if (from.dtype != info.dtype || from.rank != info.rank || (info.where != Where::Batch && info.where != Where::Upload))
    throw nb::value_error("the array does not have the planned type and rank");
  if (!from.contiguous()) throw nb::value_error("expected a contiguous array");
  std::memcpy(to->data, from.data, static_cast<size_t>(from.elements() * size_of(from.dtype)));
}

// A plan's code fits one element type and rank; data of another would be read past their end.
void check_fed(const JobBox& box, int value, View& v) {
  const Value& planned = box.job->plan->values[static_cast<size_t>(value)];
  if (planned.dtype == DType::BF16 && v.dtype == DType::U16) v.dtype = DType::BF16;  // NumPy's arrays have its bits
  if (v.dtype != planned.dtype || v.rank != planned.rank)
    throw nb::value_error("the data do not have the planned element type and number of axes");
}

// Rows of an array in the device's memory, which its owner keeps; `row` -1: one per row, along its first axis. Work waits
// for `stream`, if there is one.
void feed_at(JobBox& b, int value, int64_t row, uintptr_t address, const std::vector<int64_t>& shape,
             const std::vector<int64_t>& strides, int dtype, std::optional<uintptr_t> stream) {
  Job& job = *b.job;
  const size_t axes = row < 0 ? 1 : 0;  // that are not a row's
  if (!job.on_device) throw nb::value_error("the plan runs on no device");
  if (shape.size() != strides.size() || shape.size() < axes || shape.size() - axes > kMaxRank)
    throw nb::value_error("expected at most 8 axes");
  if (row >= job.rows || (axes && shape[0] != job.rows)) throw nb::value_error("one element per row");
  View v;
  v.device = true;
  v.data = reinterpret_cast<uint8_t*>(address);
  v.dtype = static_cast<DType>(dtype);
  v.rank = static_cast<int32_t>(shape.size() - axes);
  std::copy(shape.begin() + static_cast<int64_t>(axes), shape.end(), v.shape);
  std::copy(strides.begin() + static_cast<int64_t>(axes), strides.end(), v.stride);
  check_fed(b, value, v);
  if (stream) job.on_device->follow(*stream);
  if (!axes) {
    job.row(row)[value] = v;
    return;
  }
  for (int64_t r = 0; r < job.rows; ++r, v.data += strides[0]) job.row(r)[value] = v;
}

void bind_jobs(nb::module_& m) {
  nb::class_<JobBox>(m, "Job")
      .def_prop_ro("rows", [](const JobBox& b) { return b.job->rows; })
      .def_prop_ro("id", [](const JobBox& b) { return reinterpret_cast<uintptr_t>(b.job); })
      .def("feed",
           [](JobBox& b, int value, int64_t row, const AnyArray& a) {
             View v = view_of(a);
             check_fed(b, value, v);
             if (row < 0 || row >= b.job->rows) throw nb::index_error();
             b.job->row(row)[value] = v;
           })
      .def("feed_rows",
           [](JobBox& b, int value, const AnyArray& a) {
             const View whole = view_of(a);
             View v = whole;
             v.rank = whole.rank - 1;
             std::copy(whole.shape + 1, whole.shape + whole.rank, v.shape);
             std::copy(whole.stride + 1, whole.stride + whole.rank, v.stride);
             if (whole.rank < 1 || whole.shape[0] != b.job->rows) throw nb::value_error("one element per row");
             check_fed(b, value, v);
             for (int64_t r = 0; r < b.job->rows; ++r, v.data += whole.stride[0]) b.job->row(r)[value] = v;
           })
      .def("feed_at", &feed_at, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("hold", [](JobBox& b) { b.job->held = true; })
      .def("feed_scalar", [](JobBox& b, int value, int64_t row, double x) { feed_scalar(b, value, row, x); })
      .def("supply",
           [](JobBox& b, int output, uintptr_t pointer, nb::object stream) {
             OutputMemory& memory = b.job->outputs.at(static_cast<size_t>(output));
             memory.data = reinterpret_cast<uint8_t*>(pointer);
             memory.supplied = true;
             if (!stream.is_none()) b.job->on_device->follow(nb::cast<uintptr_t>(stream));
           },
           nb::arg("output"), nb::arg("pointer"), nb::arg("stream") = nb::none())
      .def("array",
           [](nb::handle self, int64_t row, int value) {
             JobBox& b = nb::cast<JobBox&>(self);
             return array_over(b.job->row(row)[value], self, false);
           })
      .def("active",
           [](JobBox& b, int64_t row, int step) {
             return !b.job->failing[static_cast<size_t>(row)] &&
                    b.engine->active(b.job, row, b.job->plan->steps[static_cast<size_t>(step)]);
           })
      .def("put", &put_value)
      .def("fail", [](JobBox& b, int64_t row, int step, std::string text) {
        b.engine->fail_row(b.job, row, step, std::move(text));
      })
      .def("take_output", &take_output)
      .def("take_outputs",
           [](JobBox& b) {
             nb::list list;
             for (size_t i = 0; i < b.job->outputs.size(); ++i) list.append(take_output(b, static_cast<int>(i)));
             return list;
           })
      .def_prop_ro("segment", [](const JobBox& b) { return b.job->segment; })
      .def_prop_ro("has_errors", [](const JobBox& b) { return !b.job->errors.empty(); })
      .def_prop_ro("errors", [](const JobBox& b) {
        nb::list list;
        for (const RowError& e : b.job->errors)
          list.append(nb::make_tuple(e.row, e.step, e.message, e.values, nb::bytes(e.text.data(), e.text.size())));
        return list;
      });

  nb::class_<WorkBox>(m, "PythonWork")
      .def_prop_ro("job", [](const WorkBox& w) { return JobBox{w.engine, w.work.job}; })
      .def_prop_ro("row", [](const WorkBox& w) { return w.work.parked ? w.work.parked->row : int64_t{-1}; })
      .def_prop_ro("step",
                   [](const WorkBox& w) {
                     const Segment& s = w.work.job->plan->segments[w.work.job->segment];
                     return w.work.parked ? s.steps[w.work.parked->position] : -1;
                   })
      .def_prop_ro("params",
                   [](const WorkBox& w) { return w.work.parked ? w.work.parked->params : std::vector<double>{}; })
      .def_prop_ro("reason", [](const WorkBox& w) { return w.work.parked ? w.work.parked->reason : std::string{}; })
      .def("outputs", [](nb::handle self) {
        // Arrays over the memory that the parked row's step is to fill.
        WorkBox& w = nb::cast<WorkBox&>(self);
        const Job* job = w.work.job;
        const Segment& segment = job->plan->segments[job->segment];
        nb::list list;
        for (const int32_t v : job->plan->steps[segment.steps[w.work.parked->position]].out)
          list.append(array_over(w.work.job->row(w.work.parked->row)[v], self, true));
        return list;
      });
}

// A new array whose element i is make(i).
template <class T, class F>
nb::ndarray<nb::numpy, T, nb::ndim<1>> column(size_t n, F make) {
  std::unique_ptr<T[]> made(new T[n ? n : 1]);
  for (size_t i = 0; i < n; ++i) made[i] = make(i);
  T* const out = made.release();
  nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(out, {n}, owner);
}

void bind_run(nb::module_& m) {
  nb::class_<Engine>(m, "Engine")
      .def(nb::new_([](std::shared_ptr<Plan> plan, int threads, std::shared_ptr<gpu::Device> device, uint64_t limit) {
        std::unique_ptr<gpu::Place> place;
        if (device) {
          place = std::make_unique<gpu::Place>();
          place->device = std::move(device);
          place->account->limit = limit;
        }
        // In a child after a fork there are no threads to join, and locks may be held for ever: nothing is taken down.
        return std::shared_ptr<Engine>(new Engine(std::move(plan), threads, std::move(place)),
                                       [pid = ::getpid()](Engine* e) {
                                         if (::getpid() == pid) delete e;
                                       });
      }), nb::arg("plan"), nb::arg("threads"), nb::arg("device") = nb::none(),
          nb::arg("memory_limit") = ~uint64_t{0})
      .def("acquire",
           [](std::shared_ptr<Engine> e, Keys keys, Longs epochs, uint64_t seed, const nb::tuple& indices) {
             return JobBox{e, acquire_rows(*e, keys, epochs, seed, indices)};
           })
      .def("release", [](Engine& e, JobBox& b) { e.release(b.job); })
      .def("submit", [](Engine& e, JobBox& b) { e.submit(b.job); })
      .def("admit", [](Engine& e, JobBox& b) { e.admit(b.job); })
      .def_prop_ro("device_bytes", &Engine::device_bytes)
      .def("wait",
           [](Engine& e, JobBox& b, double timeout_s) {
             if (b.job->state == JobState::Done) return static_cast<int>(Wait::Done);
             return without_gil([&] { return static_cast<int>(e.wait(b.job, timeout_s)); });
           })
      .def("done", [](Engine&, JobBox& b) { return b.job->state == JobState::Done; })
      .def("begin", [](Engine& e, JobBox& b) { e.begin(b.job); })
      .def("advance",
           [](std::shared_ptr<Engine> e, JobBox& b) -> nb::object {  // None: done; else the work to do
             PythonWork work;
             if (without_gil([&] { return e->advance(b.job, &work); })) return nb::none();
             return nb::cast(new WorkBox{e, std::move(work)}, nb::rv_policy::take_ownership);
           })
      .def("run_row", &run_row)
      .def("run_rows", &run_rows)
      .def("move_on_device",
           [](Engine& e, const std::vector<std::tuple<uintptr_t, uintptr_t, size_t>>& moves) {
             std::vector<Engine::Move> all;
             for (const auto& [to, from, bytes] : moves) all.push_back({to, from, bytes});
             without_gil([&] { e.move_on_device(all); });
           })
      .def("stack_on_device", &stack_on_device)
      .def("next_python",
           [](std::shared_ptr<Engine> e, double timeout_s) -> nb::object {
             PythonWork work;
             bool closed = false;
             if (!without_gil([&] { return e->next_python(&work, timeout_s, &closed); }))
               return closed ? nb::bool_(false) : nb::bool_(true);
             return nb::cast(new WorkBox{e, std::move(work)}, nb::rv_policy::take_ownership);
           })
      .def("finish_python", [](Engine& e, WorkBox& w) { e.finish_python(std::move(w.work)); })
      .def("close", [](Engine& e) { without_gil([&] { e.close(); }); })
      .def_prop_ro("closed", &Engine::closed)
      .def_prop_ro("threads", &Engine::threads)
      .def("step_times", &Engine::step_times)
      .def("device_times", &Engine::device_times)
      .def_prop_ro("scratch_bytes", &Engine::scratch_bytes);
  m.def("gil_acquired", [] { return gil_acquired.load(); });
  m.def("allocations", [] { return large_allocations.load(); });
  m.def("philox", [](uint64_t key, uint64_t low, uint64_t high) {
    const philox::Block b = philox::generate(key, low, high);
    return nb::make_tuple(b.w[0], b.w[1], b.w[2], b.w[3]);
  });
  m.def("epoch_key", &philox::epoch_key);
  m.def("permute", [](uint64_t seed, int64_t epoch, uint64_t size, const Longs& positions) {
    const uint64_t key = philox::epoch_key(seed, epoch);
    return column<int64_t>(positions.shape(0), [&](size_t i) {
      return static_cast<int64_t>(philox::permute(key, size, static_cast<uint64_t>(positions.data()[i])));
    });
  });
  m.def("permute_each", [](uint64_t seed, const Longs& parts, const Longs& epochs, const Longs& sizes,
                           const Longs& positions) {
    const size_t n = positions.shape(0);
    if (parts.shape(0) != n || epochs.shape(0) != n || sizes.shape(0) != n)
      throw nb::value_error("one part, epoch and size per position");
    return column<int64_t>(n, [&](size_t i) {
      const uint64_t size = static_cast<uint64_t>(sizes.data()[i]), at = static_cast<uint64_t>(positions.data()[i]);
      if (at >= size) throw nb::index_error("a position is outside of its part");
      const uint64_t key = philox::part_key(seed, parts.data()[i], epochs.data()[i]);
      return static_cast<int64_t>(philox::permute(key, size, at));
    });
  });
  m.def("uniforms", [](uint64_t seed, int64_t epoch, uint32_t draw, const Keys& keys) {
    const uint64_t key = philox::epoch_key(seed, epoch);
    return column<double>(keys.shape(0), [&](size_t i) { return philox::Stream(key, keys.data()[i], draw).uniform(); });
  });
}

}  // namespace

void bind_engine(nb::module_& m) {
  bind_plan(m);
  nb::module_ kernels = m.def_submodule("kernels", "Constructors of the kernels that plans are made of.");
  bind_kernels(kernels);
  bind_gpu(m);
  bind_jobs(m);
  bind_run(m);
}

}  // namespace stoker
