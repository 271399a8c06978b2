// SPDX-License-Identifier: Apache-2.0
// Bindings of arrays in device memory outside of a run: copies of host memory, memory of other libraries, other shapes
// of the same bytes, and copies to other memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/tensor.hpp"
#include "bind/gil.hpp"
#include "bind/gpu.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

void require(bool condition, const char* text) {
  if (!condition) throw nb::value_error(text);
}

DType require_type(int type) {
  require(type >= 0 && type <= static_cast<int>(DType::BF16), "expected the number of an element type");
  return static_cast<DType>(type);
}

// Return the bytes of a contiguous array.
size_t require_bytes(DType dtype, const std::vector<int64_t>& shape) {
  require(shape.size() <= kMaxRank, "expected at most 8 axes");
  int64_t bytes = size_of(dtype);
  const bool empty = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n == 0; });
  for (const int64_t n : shape) {
    require(n >= 0, "expected extents of at least 0");
    require(empty || n <= std::numeric_limits<int64_t>::max() / bytes, "expected an array that memory can hold");
    if (!empty) bytes *= n;
  }
  return empty ? 0 : static_cast<size_t>(bytes);
}

size_t bytes_of(const DeviceArray& a) { return require_bytes(a.dtype, a.shape); }

// Return uninitialized memory on a device, which it gets back when the array is released.
DeviceArray allocate(const std::shared_ptr<gpu::Device>& device, DType dtype, std::vector<int64_t> shape) {
  DeviceArray a;
  a.device = device;
  a.dtype = dtype;
  a.shape = std::move(shape);
  const size_t bytes = std::max<size_t>(bytes_of(a), 1);
  gpu::DeviceResources resources;
  resources.device = device;
  resources.quota = std::make_shared<gpu::MemoryQuota>();
  a.block = std::make_shared<BlockPool::Block>(without_gil([&] {
    const gpu::Visit visit(device.get());
    return std::make_shared<BlockPool>(0, &resources)->take(bytes);
  }));
  a.data = a.block->data;
  return a;
}

// Copy an array in host memory, and wait for the copy.
DeviceArray upload(const std::shared_ptr<gpu::Device>& device,
                   const nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>& array, int type) {
  require(device != nullptr, "expected a device");
  const DType dtype = require_type(type);
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  require(array.itemsize() == static_cast<size_t>(size_of(dtype)), "expected elements of the given type");
  DeviceArray a = allocate(device, dtype, std::move(shape));
  const size_t bytes = bytes_of(a);
  const auto* from = static_cast<const uint8_t*>(array.data());
  const auto copy = [&] {
    const gpu::Visit visit(device.get());
    device->copy_in(reinterpret_cast<gpu::Address>(a.data), from, bytes);
    gpu::wait_and_forget(*device, device->record_copies());
  };
  if (bytes) without_gil(copy);
  return a;
}

// Wait on the host for what has been issued to a stream.
void wait_for(gpu::Device& device, uintptr_t stream) {
  without_gil([&] {
    const gpu::Visit visit(&device);
    const gpu::WorkStream own = device.next_work_stream();
    gpu::do_now(device, own, [&] { device.follow(own, stream); });
  });
}

// Stream of the device's for work that other libraries issue. It ends with this object, after its work.
class OwnStream {
 public:
  explicit OwnStream(std::shared_ptr<gpu::Device> device) : device_(std::move(device)) {
    require(device_ != nullptr, "expected a device");
    const gpu::Visit visit(device_.get());
    handle_ = device_->make_stream(gpu::Priority::Least);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() {
    const gpu::Visit visit(device_.get(), std::nothrow);
    device_->drop_stream(handle_);
  }
  uintptr_t handle() const { return handle_; }

 private:
  std::shared_ptr<gpu::Device> device_;
  uintptr_t handle_ = 0;
};

// Return contiguous memory of another library as an array, after what has been issued to `stream` is done. The caller
// vouches for the address; `owner` keeps the memory.
DeviceArray wrap(const std::shared_ptr<gpu::Device>& device, uintptr_t address, int type, std::vector<int64_t> shape,
                 nb::object owner, std::optional<uintptr_t> stream) {
  require(device != nullptr, "expected a device");
  DeviceArray a;
  a.device = device;
  a.dtype = require_type(type);
  a.shape = std::move(shape);
  require(address != 0 || bytes_of(a) == 0, "expected an address");
  a.data = reinterpret_cast<uint8_t*>(address);
  a.block = std::shared_ptr<BlockPool::Block>(new BlockPool::Block(), [owner = owner.release()](BlockPool::Block* b) {
    delete b;
    const WithGil gil;
    owner.dec_ref();
  });
  if (stream) wait_for(*device, *stream);
  return a;
}

// Return the same bytes with another type and shape.
DeviceArray viewed(const DeviceArray& a, int type, std::vector<int64_t> shape) {
  DeviceArray b = a;
  b.dtype = require_type(type);
  b.shape = std::move(shape);
  require(bytes_of(a) == bytes_of(b), "expected a type and a shape of the same number of bytes");
  return b;
}

// Copy an array to memory of the device: after the work that has been issued to `stream`, and before its later work.
// Without a stream, and with `wait`, the copy is done on return.
void copy_to(const DeviceArray& a, uintptr_t address, std::optional<uintptr_t> stream, bool wait) {
  const size_t bytes = bytes_of(a);
  require(address != 0 || bytes == 0, "expected an address");
  gpu::Device& device = *a.device;
  const auto copy = [&] {
    const gpu::Visit visit(&device);
    const gpu::WorkStream own = device.next_work_stream();
    const auto issue = [&] {
      if (stream) device.follow(own, *stream);
      device.move(own, static_cast<gpu::Address>(address), reinterpret_cast<gpu::Address>(a.data), bytes);
      if (stream) device.fork(own, *stream);
    };
    if (!stream || wait) gpu::do_now(device, own, issue);
    else issue();
  };
  if (bytes) without_gil(copy);
}

// Copy arrays of one type and shape into one with the arrays on its first axis.
DeviceArray stack(const std::vector<DeviceArray>& rows) {
  require(!rows.empty(), "expected at least one array");
  const size_t bytes = bytes_of(rows[0]);
  for (const DeviceArray& row : rows) {
    require(row.shape == rows[0].shape && row.dtype == rows[0].dtype, "expected arrays of one type and shape");
    require(row.device == rows[0].device, "expected arrays on one device");
  }
  std::vector<int64_t> shape = rows[0].shape;
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  DeviceArray whole = allocate(rows[0].device, rows[0].dtype, std::move(shape));
  gpu::Device& device = *whole.device;
  const auto copy = [&] {
    const gpu::Visit visit(&device);
    const gpu::WorkStream own = device.next_work_stream();
    gpu::do_now(device, own, [&] {
      for (size_t i = 0; i < rows.size(); ++i)
        device.move(own, reinterpret_cast<gpu::Address>(whole.data + i * bytes),
                    reinterpret_cast<gpu::Address>(rows[i].data), bytes);
    });
  };
  if (bytes) without_gil(copy);
  return whole;
}

}  // namespace

void bind_device_arrays(nb::module_& gpu_module, nb::class_<DeviceArray>& array) {
  gpu_module.def("upload", &upload, nb::arg("device"), nb::arg("array"), nb::arg("dtype"));
  gpu_module.def("wrap", &wrap, nb::arg("device"), nb::arg("address"), nb::arg("dtype"), nb::arg("shape"),
                 nb::arg("owner"), nb::arg("stream").none());
  gpu_module.def("wait_for", &wait_for, nb::arg("device"), nb::arg("stream"));
  gpu_module.def("stack", &stack, nb::arg("rows"));
  nb::class_<OwnStream>(gpu_module, "Stream")
      .def(nb::init<std::shared_ptr<gpu::Device>>(), nb::arg("device"))
      .def_prop_ro("handle", &OwnStream::handle);
  array.def_prop_ro("device", [](const DeviceArray& a) { return a.device; })
      .def("view", &viewed, nb::arg("dtype"), nb::arg("shape"))
      .def("copy_to", &copy_to, nb::arg("address"), nb::arg("stream").none(), nb::arg("wait"));
}

}  // namespace stoker
