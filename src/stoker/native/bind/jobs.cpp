// SPDX-License-Identifier: Apache-2.0
// Bindings of batches in flight: their inputs, Python's work for them, and their outputs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "kernels/store_scalar.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

// A failed row may have values of any shape; its output becomes empty.
void drop_failed(const Job& job, int64_t rank, OutputMemory* memory) {
  for (int64_t r = 0; r < job.rows; ++r) {
    int64_t* shape = memory->shapes.data() + r * rank;
    if (job.failing[static_cast<size_t>(r)]) std::fill(shape, shape + rank, 0);
    if (!std::equal(shape, shape + rank, memory->shapes.data())) memory->dense = false;
  }
}

// Rows of one shape lie one after the other; rows of counted outputs do so only where they have their upper bounds.
void close_up(const Job& job, const Value& value, OutputMemory* memory) {
  const int64_t rank = value.rank;
  const int64_t* first = memory->shapes.data();
  int64_t bytes = size_of(value.dtype);
  for (int64_t i = 0; i < rank && job.rows > 0; ++i) bytes *= first[i];
  memory->dense = true;
  bool in_place = true;
  for (int64_t r = 0; r < job.rows; ++r) {
    memory->dense &= std::equal(first, first + rank, first + r * rank);
    in_place &= memory->offsets[static_cast<size_t>(r)] == r * bytes;
  }
  if (!memory->dense || in_place) return;
  if (memory->device) {
    memory->dense = false;  // the rows stay where they are, and the consumer's side puts them together
    return;
  }
  for (int64_t r = 0; r < job.rows; ++r) {
    int64_t& offset = memory->offsets[static_cast<size_t>(r)];
    std::memmove(memory->data + r * bytes, memory->data + offset, static_cast<size_t>(bytes));
    offset = r * bytes;
  }
}

// NumPy holds bfloat16 as uint16.
void take_bits(const Value& planned, View& v) {
  if (planned.dtype == DType::BF16 && v.dtype == DType::U16) v.dtype = DType::BF16;
}

void require_row(const Job& job, int64_t row) {
  if (row < 0 || row >= job.rows) throw nb::index_error("expected one of the batch's rows");
}

const Value& planned_value(const Job& job, int value) {
  if (value < 0 || static_cast<size_t>(value) >= job.plan->values.size())
    throw nb::index_error("expected one of the plan's values");
  return job.plan->values[static_cast<size_t>(value)];
}

void put_value(JobBox& box, int64_t row, int value, const AnyArray& array) {
  View from = view_of(array);
  require_row(*box.job, row);
  const Value& info = planned_value(*box.job, value);
  take_bits(info, from);
  if (from.dtype != info.dtype || from.rank != info.rank ||
      (info.storage != Storage::Batch && info.storage != Storage::Upload))
    throw nb::value_error("the array does not have the planned type and rank");
  if (!from.contiguous()) throw nb::value_error("expected a contiguous array");
  const auto place = [&] {
    const gpu::Visit here = box.engine->visit();
    return box.engine->allocate_value(box.job, row, value, nullptr, from.shape);
  };
  View* to = nullptr;
  try {
    to = info.storage == Storage::Upload ? without_gil(place) : place();  // the driver may have to allocate memory
  } catch (const BatchLimitReached& limit) { return box.engine->fail_by_limit(box.job, row, value, limit); }
  std::memcpy(to->data, from.data, static_cast<size_t>(from.elements() * size_of(from.dtype)));
}

// A plan's code fits one element type and rank; data of another type would be read beyond their end.
void check_fed(const JobBox& box, int value, View& v) {
  const Value& planned = planned_value(*box.job, value);
  if (planned.storage != Storage::Input) throw nb::value_error("expected a value that the caller feeds");
  take_bits(planned, v);
  if (v.dtype != planned.dtype || v.rank != planned.rank)
    throw nb::value_error("the data do not have the planned element type and number of axes");
}

// Feed rows of an array in device memory, which its owner keeps; `row` -1: one row per index of its first axis. The
// batch's work waits for `stream`, if there is one.
void feed_at(JobBox& b, int value, int64_t row, uintptr_t address, const std::vector<int64_t>& shape,
             const std::vector<int64_t>& strides, int dtype, std::optional<uintptr_t> stream) {
  Job& job = *b.job;
  const size_t axes = row < 0 ? 1 : 0;  // axes that do not belong to a row
  if (!job.on_device) throw nb::value_error("the plan runs on no device");
  if (shape.size() != strides.size() || shape.size() < axes || shape.size() - axes > kMaxRank)
    throw nb::value_error("expected at most 8 axes");
  if (row >= job.rows || (axes && shape[0] != job.rows)) throw nb::value_error("one element per row");
  if (planned_value(job, value).is_read_on_host)
    throw nb::value_error("expected data in host memory, where a step reads their elements");
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
  job.feed({value, v, strides[0]});
}

// Put a row's value of a Python step that is in device memory, without gaps. Its owner keeps it, and nothing writes it
// any more.
void put_at(JobBox& box, int64_t row, int value, uintptr_t address, const std::vector<int64_t>& shape, int dtype) {
  Job& job = *box.job;
  require_row(job, row);
  const Value& info = planned_value(job, value);
  if (!job.on_device || info.storage != Storage::Upload || info.is_read_on_host)
    throw nb::value_error("expected a value that is sent to the device, and that no step on the host reads");
  if (static_cast<DType>(dtype) != info.dtype || shape.size() != static_cast<size_t>(info.rank))
    throw nb::value_error("the array does not have the planned type and rank");
  for (const int64_t extent : shape)
    if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
      throw nb::value_error("expected extents from 0 to 2**31 - 1");
  View v;
  v.device = true;
  v.data = reinterpret_cast<uint8_t*>(address);
  v.dtype = info.dtype;
  v.rank = info.rank;
  std::copy(shape.begin(), shape.end(), v.shape);
  v.set_contiguous_strides();
  try {
    job.memory.charge(Side::Device, row, static_cast<uint64_t>(v.elements() * size_of(v.dtype)));
  } catch (const BatchLimitReached& limit) { return box.engine->fail_by_limit(box.job, row, value, limit); }
  job.row(row)[value] = v;
}

// Return an input of the Python step that runs now.
const View& python_input(Job& job, int64_t row, int value) {
  planned_value(job, value);
  const auto reads = [&](int32_t s) {
    const std::vector<int32_t>& in = job.plan->steps[static_cast<size_t>(s)].in;
    return std::find(in.begin(), in.end(), value) != in.end();
  };
  const std::vector<Segment>& segments = job.plan->segments;
  const View& view = job.row(row)[value];
  if (job.segment >= segments.size() || view.rank < 0 || view.device || !view.data ||
      std::none_of(segments[job.segment].steps.begin(), segments[job.segment].steps.end(), reads))
    throw nb::value_error("expected an input of a step that runs now, in host memory");
  return view;
}

// Return an output's memory after the batch. Where the batch has failed as a whole there may be none.
OutputMemory& delivered(Job& job, int index) {
  if (index < 0 || static_cast<size_t>(index) >= job.outputs.size())
    throw nb::index_error("expected one of the plan's outputs");
  OutputMemory& memory = job.outputs[static_cast<size_t>(index)];
  const auto rows = static_cast<size_t>(job.rows);
  if (job.state != JobState::Done || !memory.opened || memory.offsets.size() != rows)
    throw nb::value_error("expected a finished batch whose outputs have not been taken");
  memory.opened = false;
  return memory;
}

// Return the rows of a placed output, which may be in several blocks.
nb::object placed_output(const Job& job, const Value& value, OutputMemory& memory) {
  using Blocks = std::vector<BlockPool::Block>;
  auto* blocks = new Blocks(memory.arena->release());
  nb::capsule owner(blocks, [](void* p) noexcept { delete static_cast<Blocks*>(p); });
  alignas(8) static uint8_t nothing[8] = {};
  const auto place = [&](int64_t row) {
    uint8_t* const found = memory.places[static_cast<size_t>(row)];
    return found ? found : nothing;
  };
  View v;
  v.dtype = value.dtype;
  if (memory.dense && value.rank < kMaxRank) {
    v.data = job.rows > 0 ? place(0) : nothing;
    v.rank = value.rank + 1;
    v.shape[0] = job.rows;
    for (int i = 0; i < value.rank; ++i) v.shape[i + 1] = job.rows ? memory.shapes[static_cast<size_t>(i)] : 0;
    v.set_contiguous_strides();
    return array_over(v, owner, true);
  }
  std::vector<PartsOfBlock> parts;
  for (const BlockPool::Block& block : *blocks) parts.emplace_back(block.data, block.capacity, owner);
  nb::list rows;
  v.rank = value.rank;
  for (int64_t r = 0; r < job.rows; ++r) {
    v.data = place(r);
    std::copy_n(memory.shapes.begin() + r * value.rank, value.rank, v.shape);
    v.set_contiguous_strides();
    const auto of = std::find_if(parts.begin(), parts.end(), [&](const PartsOfBlock& p) { return p.has(v); });
    rows.append(of == parts.end() ? array_over(v, owner, true) : of->part(v));
  }
  return rows;
}

}  // namespace

nb::object take_output(JobBox& box, int index) {
  Job* job = box.job;
  OutputMemory& memory = delivered(*job, index);
  const Output& output = job->plan->outputs[static_cast<size_t>(index)];
  const Value& value = job->plan->values[static_cast<size_t>(output.value)];
  if (!job->errors.empty() && !output.fixed) drop_failed(*job, value.rank, &memory);
  if (output.root >= 0) return placed_output(*job, value, memory);
  if (output.count >= 0) close_up(*job, value, &memory);
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
  PartsOfBlock parts(block->data, block->capacity, owner);
  nb::list rows;
  for (int64_t r = 0; r < job->rows; ++r) {
    View v;
    v.data = memory.data + memory.offsets[static_cast<size_t>(r)];
    v.dtype = value.dtype;
    v.rank = value.rank;
    for (int i = 0; i < value.rank; ++i) v.shape[i] = memory.shapes[static_cast<size_t>(r * value.rank + i)];
    v.set_contiguous_strides();
    rows.append(parts.has(v) ? parts.part(v) : array_over(v, owner, true));
  }
  return rows;
}

nb::object take_row(JobBox& box, size_t index) {
  if (index >= box.job->outputs.size()) throw nb::index_error("expected one of the plan's outputs");
  if (box.job->outputs[index].device) return take_output(box, static_cast<int>(index));
  if (box.job->plan->outputs[index].root >= 0) {
    nb::object rows = take_output(box, static_cast<int>(index));
    return rows[0];
  }
  OutputMemory& memory = delivered(*box.job, static_cast<int>(index));
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
  require_row(*b.job, row);
  const Value& planned = planned_value(*b.job, value);
  if (planned.storage != Storage::Input || planned.rank != 0)
    throw nb::value_error("expected a value without axes that the caller feeds");
  View& v = b.job->row(row)[value];
  v = View{};
  v.dtype = b.job->plan->values[static_cast<size_t>(value)].dtype;
  v.data = b.engine->batch_memory(b.job, static_cast<size_t>(value), row).get(8);
  store_scalar(v.data, v.dtype, x);
}

void feed_numbers(const JobBox& b, int value, int64_t row, const nb::tuple& numbers) {
  require_row(*b.job, row);
  const Value& planned = planned_value(*b.job, value);
  if (planned.storage != Storage::Input || planned.rank != 1)
    throw nb::value_error("expected a value with one axis that the caller feeds");
  View v;
  v.dtype = planned.dtype;
  v.rank = 1;
  v.shape[0] = static_cast<int64_t>(numbers.size());
  v.set_contiguous_strides();
  const auto bytes = numbers.size() * static_cast<size_t>(size_of(v.dtype));
  v.data = b.engine->batch_memory(b.job, static_cast<size_t>(value), row).get(std::max(bytes, size_t{8}));
  for (size_t i = 0; i < numbers.size(); ++i)
    store_scalar(v.data + static_cast<int64_t>(i) * v.stride[0], v.dtype, nb::cast<double>(numbers[i]));
  b.job->row(row)[value] = v;
}

void feed_row(const JobBox& b, int value, int64_t row, const AnyArray& a) {
  View v = view_of(a);
  check_fed(b, value, v);
  require_row(*b.job, row);
  b.job->row(row)[value] = v;
}

// Feed rows of a list until one is not an array in host memory. Return their number.
int64_t feed_list(const JobBox& b, int value, const nb::list& list) {
  const nb::tuple rows(list);  // an array's own code, or another thread, may change the list
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t r = 0; r < count; ++r) {
    AnyArray row;
    if (!nb::try_cast(rows[static_cast<size_t>(r)], row)) return r;
    feed_row(b, value, r, row);
  }
  return count;
}

void feed_rows(const JobBox& b, int value, const ArrayRows& rows) {
  if (static_cast<int64_t>(rows.views().size()) != b.job->rows) throw nb::value_error("expected one array per row");
  View first = rows.first();
  check_fed(b, value, first);
  for (int64_t r = 0; r < b.job->rows; ++r) {
    View& v = b.job->row(r)[value];
    v = rows.views()[static_cast<size_t>(r)];
    v.dtype = first.dtype;
  }
}

// Return an array in host memory as an object with DLPack's protocol: NumPy's own has no bfloat16. Consumers may release
// it on any thread.
nb::object exchange(const nb::ndarray<nb::numpy, nb::device::cpu>& array, int dtype) {
  if (dtype < 0 || dtype > static_cast<int>(DType::BF16)) throw nb::value_error("expected the number of a DType");
  const View v = view_of(AnyArray(array));
  const auto type = static_cast<DType>(dtype);
  if (type != v.dtype && !(type == DType::BF16 && v.dtype == DType::U16))
    throw nb::value_error("expected the array's element type, or bfloat16 for its bits");
  if (!v.contiguous()) throw nb::value_error("expected a contiguous array");
  size_t shape[kMaxRank];
  for (int i = 0; i < v.rank; ++i) shape[i] = static_cast<size_t>(v.shape[i]);
  const nb::object owner = nb::cast(array);
  return nb::cast(
      nb::ndarray<nb::array_api>(v.data, static_cast<size_t>(v.rank), shape, owner, nullptr, dlpack_of(type)));
}

void bind_jobs(nb::module_& m) {
  m.def("exchange", &exchange, nb::arg("array").noconvert(), nb::arg("dtype"));
  nb::class_<JobBox>(m, "Job")
      .def_prop_ro("rows", [](const JobBox& b) { return b.job->rows; })
      .def_prop_ro("id", [](const JobBox& b) { return reinterpret_cast<uintptr_t>(b.job); })
      .def("feed", [](JobBox& b, int value, int64_t row, const AnyArray& a) { feed_row(b, value, row, a); })
      .def("feed_list", &feed_list)
      .def("feed_rows",
           [](JobBox& b, int value, const AnyArray& a) {
             const View whole = view_of(a);
             if (whole.rank < 1 || whole.shape[0] != b.job->rows) throw nb::value_error("expected one element per row");
             View v = whole;
             v.rank = whole.rank - 1;
             std::copy(whole.shape + 1, whole.shape + whole.rank, v.shape);
             std::copy(whole.stride + 1, whole.stride + whole.rank, v.stride);
             check_fed(b, value, v);
             b.job->feed({value, v, whole.stride[0]});
           })
      .def("feed_at", &feed_at, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("hold", [](JobBox& b) { b.job->held = true; })
      .def("feed_scalar", [](JobBox& b, int value, int64_t row, double x) { feed_scalar(b, value, row, x); })
      .def(
          "supply",
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
             require_row(*b.job, row);
             return array_over(python_input(*b.job, row, value), self, false);
           })
      .def("active",
           [](JobBox& b, int64_t row, int step) {
             require_row(*b.job, row);
             if (step < 0 || static_cast<size_t>(step) >= b.job->plan->steps.size()) throw nb::index_error();
             return !b.job->failing[static_cast<size_t>(row)] &&
                    b.engine->active(b.job, row, b.job->plan->steps[static_cast<size_t>(step)]);
           })
      .def("put", &put_value)
      .def("put_at", &put_at, nb::arg("row"), nb::arg("value"), nb::arg("address"), nb::arg("shape"), nb::arg("dtype"))
      .def("fail",
           [](JobBox& b, int64_t row, int step, std::string text) {
             require_row(*b.job, row);
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
        // Return arrays over the memory that the parked row's step is to fill.
        WorkBox& w = nb::cast<WorkBox&>(self);
        if (!w.work.parked) throw nb::value_error("expected the work of a single row");
        const Job* job = w.work.job;
        const Segment& segment = job->plan->segments[job->segment];
        nb::list list;
        for (const int32_t v : job->plan->steps[segment.steps[w.work.parked->position]].out)
          list.append(array_over(w.work.job->row(w.work.parked->row)[v], self, true));
        return list;
      });
}

}  // namespace stoker
