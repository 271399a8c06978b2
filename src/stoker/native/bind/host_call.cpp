// SPDX-License-Identifier: Apache-2.0
// Binding of functions in Python that issue a step's work to a batch's stream, and the exchange of whole batches with
// libraries whose work runs on streams of their own.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "gpu/device_resources.hpp"
#include "gpu/host_call.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

constexpr size_t kKeptBlocks = 8;  // of the arrays of some batches in flight

void require(bool holds, const char* text) {
  if (!holds) throw nb::value_error(text);
}

size_t bytes_of(const DeviceArray& a) {
  auto bytes = static_cast<size_t>(size_of(a.dtype));
  for (const int64_t n : a.shape) bytes *= static_cast<size_t>(n);
  return bytes;
}

// Arrays of whole batches for a library whose work runs on streams of its own. The library may keep the arrays that it
// gets: they are copies, whose memory is reused after the last reader. All calls come with the GIL, from a function that
// issues a batch's work, and `stream` is the batch's.
class BatchExchange {
 public:
  BatchExchange(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota)
      : device_(std::move(device)) {
    gpu::DeviceResources resources;
    resources.device = device_;
    resources.quota = std::move(quota);
    pool_ = std::make_shared<BlockPool>(kKeptBlocks, &resources);
  }
  ~BatchExchange() {
    for (Read& read : reads_) {
      without_gil([&] {  // the event may wait for work that needs the GIL
        const gpu::Visit visit(device_.get(), std::nothrow);
        try {
          gpu::wait_and_forget(*device_, read.done);
        } catch (const std::exception&) {}  // a failed device reads nothing
      });
    }
  }
  BatchExchange(const BatchExchange&) = delete;
  BatchExchange& operator=(const BatchExchange&) = delete;

  // Return one array of rows of one shape and type. The copies are in order with the work on `stream`.
  DeviceArray stack(uintptr_t stream, const std::vector<DeviceArray>& rows) {
    require(!rows.empty(), "expected at least a row");
    for (const DeviceArray& row : rows)
      require(row.shape == rows[0].shape && row.dtype == rows[0].dtype, "expected rows of one shape and type");
    DeviceArray whole;
    whole.device = device_;
    whole.dtype = rows[0].dtype;
    whole.shape = rows[0].shape;
    whole.shape.insert(whole.shape.begin(), static_cast<int64_t>(rows.size()));
    const size_t bytes = bytes_of(rows[0]);
    whole.block = std::make_shared<BlockPool::Block>(without_gil([&] {
      const gpu::Visit visit(device_.get());
      const gpu::WorkStream work_stream = numbered(stream);
      BlockPool::Block block = pool_->take(bytes * rows.size());
      if (block.stream != BlockPool::kNoStream) device_->follow(work_stream, block.stream);
      block.stream = stream;
      auto to = reinterpret_cast<gpu::Address>(block.data);
      for (const DeviceArray& row : rows) {
        if (bytes) device_->move(work_stream, to, reinterpret_cast<gpu::Address>(row.data), bytes);
        to += bytes;
      }
      return block;
    }));
    whole.data = whole.block->data;
    return whole;
  }

  // Make later work of the library's stream `other` wait for the work on `stream` so far.
  void order(uintptr_t stream, uintptr_t other) {
    without_gil([&] {
      const gpu::Visit visit(device_.get());
      device_->fork(numbered(stream), other);
    });
  }

  // Copy an array of a whole batch to rows, in order with the work on `stream`, which must wait for the array already.
  // The array is kept until it has been read.
  void split(uintptr_t stream, const nb::ndarray<>& array, const std::vector<DeviceArray>& rows) {
    require(!rows.empty() && array.ndim() > 0 && array.shape(0) == rows.size(), "expected an array with all rows");
    int64_t whole = 1;
    for (size_t i = array.ndim(); i-- > 0;) {
      require(array.shape(i) < 2 || array.stride(i) == whole,
              "expected an array in the order of its axes, without gaps");
      whole *= static_cast<int64_t>(array.shape(i));
    }
    const nb::dlpack::dtype type = array.dtype();
    for (const DeviceArray& row : rows) {
      const nb::dlpack::dtype own = dlpack_of(row.dtype);
      require(own.code == type.code && own.bits == type.bits && type.lanes == 1, "expected an array of the rows' type");
      bool fits = row.shape.size() + 1 == array.ndim();
      for (size_t i = 0; fits && i < row.shape.size(); ++i)
        fits = row.shape[i] == static_cast<int64_t>(array.shape(i + 1));
      require(fits, "expected an array of the rows' shape");
    }
    const bool here = device_->number() < 0
                          ? array.device_type() == nb::device::cpu::value
                          : array.device_type() == nb::device::cuda::value && array.device_id() == device_->number();
    require(here, "expected an array in the memory of the batch's GPU");
    drop_read();
    const size_t bytes = bytes_of(rows[0]);
    auto from = reinterpret_cast<gpu::Address>(array.data());
    gpu::Event done = nullptr;
    without_gil([&] {
      const gpu::Visit visit(device_.get());
      const gpu::WorkStream work_stream = numbered(stream);
      try {
        for (const DeviceArray& row : rows) {
          if (bytes) device_->move(work_stream, reinterpret_cast<gpu::Address>(row.data), from, bytes);
          from += bytes;
        }
        done = device_->record(work_stream);
      } catch (...) {
        device_->drain(work_stream);  // the array is released
        throw;
      }
    });
    reads_.push_back({done, array});
  }

 private:
  struct Read {
    gpu::Event done;      // passes when the array has been read
    nb::ndarray<> array;  // keeps it
  };

  gpu::WorkStream numbered(uintptr_t stream) const {
    for (gpu::WorkStream i = 0; i < gpu::kWorkStreams; ++i)
      if (device_->stream_of(i) == stream) return i;
    throw std::invalid_argument("expected the stream of a batch");
  }

  // Release the arrays that have been read.
  void drop_read() {
    while (!reads_.empty()) {
      const bool passed = without_gil([&] {
        const gpu::Visit visit(device_.get());
        if (!device_->passed(reads_.front().done)) return false;
        device_->forget(reads_.front().done);
        return true;
      });
      if (!passed) return;
      reads_.pop_front();
    }
  }

  const std::shared_ptr<gpu::Device> device_;
  std::shared_ptr<BlockPool> pool_;
  std::deque<Read> reads_;  // in the order of the batches
};

// Function in Python that issues work: ``function(stream, rows, exchange)`` with lists of outputs and of inputs for each
// row returns None, or the text of an error. It is referenced weakly, so that the garbage collector sees its cycles: the
// plan, which owns the kernel, owns the function, too.
class PythonCall : public gpu::HostCall {
 public:
  PythonCall(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota, const nb::object& function)
      : device_(std::move(device)),
        exchange_(std::make_shared<BatchExchange>(device_, std::move(quota))),
        function_(nb::steal(PyWeakref_NewRef(function.ptr(), nullptr))) {
    if (!function_.is_valid()) throw nb::python_error();
  }

  void issue(uintptr_t stream, const std::vector<Row>& rows) const override {
    {
      const WithGil gil;
      std::string failure;
      try {
        failure = call(stream, rows);
      } catch (const nb::python_error& error) { failure = error.what(); }
      if (!failure.empty()) throw gpu::DeviceFailure(failure);
    }
    device_->enter();  // the function may have left another device's context
  }

 private:
  std::string call(uintptr_t stream, const std::vector<Row>& rows) const {
    const nb::object function = function_();
    if (function.is_none()) return "the function of a pipeline that is gone was called";
    nb::list all;
    for (const Row& row : rows) all.append(nb::make_tuple(arrays(row.outputs), arrays(row.inputs)));
    const nb::object failure = function(stream, all, exchange_);
    return failure.is_none() ? std::string() : nb::cast<std::string>(failure);
  }
  nb::list arrays(const std::vector<View>& views) const {
    nb::list found;
    for (const View& v : views)
      found.append(DeviceArray{device_, std::make_shared<BlockPool::Block>(), v.data, v.dtype,
                               std::vector<int64_t>(v.shape, v.shape + v.rank)});
    return found;
  }

  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<BatchExchange> exchange_;
  const nb::object function_;  // weak
};

}  // namespace

void bind_host_call(nb::module_& gpu_module) {
  nb::class_<BatchExchange>(gpu_module, "BatchExchange")
      .def("stack", &BatchExchange::stack, nb::arg("stream"), nb::arg("rows"))
      .def("order", &BatchExchange::order, nb::arg("stream"), nb::arg("other"))
      .def("split", &BatchExchange::split, nb::arg("stream"), nb::arg("array"), nb::arg("rows"));
  nb::class_<gpu::HostCall>(gpu_module, "HostCall")
      .def(nb::new_([](std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota,
                       const nb::object& function) {
             return std::shared_ptr<gpu::HostCall>(
                 std::make_shared<PythonCall>(std::move(device), std::move(quota), function));
           }),
           nb::arg("device"), nb::arg("quota"), nb::arg("function"));
}

}  // namespace stoker
