// SPDX-License-Identifier: Apache-2.0
// Bindings of devices, compiled kernels and device memory for the planner and the executor.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/dlpack_exchange.hpp"
#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "gpu/file_reads.hpp"
#include "gpu/idle_devices.hpp"
#include "gpu_kernels/gpu_with_cpu_fallback.hpp"
#include "gpu_kernels/jpeg_index.hpp"
#include "run/job_on_device.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

constexpr uintptr_t kLegacyStream = 1;  // also its number in DLPack and the driver
// The per-thread default stream means another stream here, on another thread; the legacy stream waits for all of them.
constexpr int64_t kThreadsStream = 2;

struct NumPyType {
  char kind;
  uint8_t bytes;
};
NumPyType numpy_type(DType t) {
  switch (t) {
    case DType::Bool: return {'b', 1};
    case DType::U8: return {'u', 1};
    case DType::U16: return {'u', 2};
    case DType::U32: return {'u', 4};
    case DType::U64: return {'u', 8};
    case DType::I8: return {'i', 1};
    case DType::I16: return {'i', 2};
    case DType::I32: return {'i', 4};
    case DType::I64: return {'i', 8};
    case DType::F16: return {'f', 2};
    case DType::F32: return {'f', 4};
    default: return {'f', 8};
  }
}

// Kernel, blocks, threads of a block, parameters.
using Work = std::tuple<std::shared_ptr<gpu::Function>, uint32_t, uint32_t, std::vector<uint64_t>>;

// Run kernels in order on memory of a library, after what has been issued to its stream, whose later work waits for them.
// Without a stream, wait for them here.
void run_launches(gpu::Device& device, const std::vector<Work>& work, std::optional<uintptr_t> stream) {
  std::vector<gpu::Launch> launches;
  for (const auto& [function, blocks, threads, parameters] : work) {
    if (!function || blocks < 1 || threads < 1 || threads > 1024 || parameters.size() > gpu::Launch::kMaxArguments)
      throw nb::value_error("expected a kernel, at least a block, 1 to 1024 threads, at most 12 parameters");
    gpu::Launch& launch = launches.emplace_back();
    launch.function = function.get();
    launch.grid[0] = blocks;
    launch.block[0] = threads;
    for (const uint64_t p : parameters) launch.argument[launch.arguments++] = p;
  }
  without_gil([&] {
    const gpu::Visit visit(&device);
    const gpu::WorkStream own = device.next_work_stream();
    if (stream) device.follow(own, *stream);
    for (const gpu::Launch& launch : launches) device.launch(own, launch);
    if (stream) device.fork(own, *stream);
    else gpu::wait_and_forget(device, device.record(own));
  });
}

// Record the stream on which a consumer reads. Arrays share blocks, and without the GIL threads export them at the same
// time.
void record_stream(const DeviceArray& a, uintptr_t stream) {
  std::atomic_ref<uintptr_t>(a.block->stream).store(stream, std::memory_order_relaxed);
}

nb::object capsule(DeviceArray& a, nb::handle self, nb::object stream) {
  const int64_t requested = stream.is_none() ? 0 : nb::cast<int64_t>(stream);
  record_stream(a, requested < 1 || requested == kThreadsStream ? kLegacyStream : static_cast<uintptr_t>(requested));
  std::vector<size_t> shape(a.shape.begin(), a.shape.end());
  const int device = a.device->number();
  nb::ndarray<> array(a.data, shape.size(), shape.data(), self, nullptr, dlpack_of(a.dtype),
                      device < 0 ? nb::device::cpu::value : nb::device::cuda::value, device < 0 ? 0 : device);
  const nb::object exported = nb::cast(array);  // a capsule or an object with one, depending on nanobind's version
  return nb::hasattr(exported, "__dlpack__") ? exported.attr("__dlpack__")() : exported;
}

// Return the table of rows of one rank and type for a kernel that reads them on `stream`: a line of the rows' addresses
// and one of their extents on each axis, whose last element is the largest (0 in the first line).
nb::object row_table(const std::vector<DeviceArray>& rows, uintptr_t stream) {
  if (rows.empty()) throw nb::value_error("expected at least a row");
  const size_t rank = rows[0].shape.size(), width = rows.size() + 1;
  for (const DeviceArray& row : rows)
    if (row.shape.size() != rank || row.dtype != rows[0].dtype)
      throw nb::value_error("expected rows of one rank and type");
  for (const DeviceArray& row : rows) record_stream(row, stream ? stream : kLegacyStream);
  int64_t largest = 0;
  return nb::cast(column<int64_t>(width * (rank + 1), [&](size_t i) {
    const size_t line = i / width, row = i % width;
    if (row == rows.size()) return std::exchange(largest, 0);
    if (line == 0) return static_cast<int64_t>(reinterpret_cast<uintptr_t>(rows[row].data));
    const int64_t extent = rows[row].shape[line - 1];
    largest = std::max(largest, extent);
    return extent;
  }));
}

nb::dict cuda_interface(DeviceArray& a) {
  if (a.dtype == DType::BF16) throw nb::attribute_error("CUDA's array interface has no bfloat16; DLPack has");
  record_stream(a, kLegacyStream);
  const NumPyType type = numpy_type(a.dtype);
  nb::list shape;
  for (const int64_t n : a.shape) shape.append(n);
  nb::dict d;
  d["shape"] = nb::tuple(shape);
  d["typestr"] = std::string(type.bytes == 1 ? "|" : "<") + type.kind + std::to_string(type.bytes);
  d["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(a.data), false);
  d["strides"] = nb::none();
  d["version"] = 3;
  return d;
}

int type_of(uint8_t code, uint8_t bits, uint16_t lanes) {  // -1: no DType
  for (int t = 0; t <= static_cast<int>(DType::BF16); ++t) {
    const auto have = dlpack_of(static_cast<DType>(t));
    if (have.code == code && have.bits == bits && lanes == 1) return t;
  }
  return -1;
}

// Return the contents of a DLPack capsule: (address, shape, strides in bytes, element type or -1, device number,
// owner).
nb::tuple read_dlpack(const nb::ndarray<>& array) {
  nb::list shape, strides;
  for (size_t i = 0; i < array.ndim(); ++i) {
    shape.append(array.shape(i));
    strides.append(array.stride(i) * static_cast<int64_t>(array.itemsize()));
  }
  const int found = type_of(array.dtype().code, array.dtype().bits, array.dtype().lanes);
  nb::capsule owner(new nb::ndarray<>(array), [](void* p) noexcept { delete static_cast<nb::ndarray<>*>(p); });
  return nb::make_tuple(reinterpret_cast<uintptr_t>(array.data()), nb::tuple(shape), nb::tuple(strides), found,
                        array.device_id(), owner);
}

// Return DLPack's C interface of exactly this type; null if it has none of a known version. A type derived from one
// that has it may be anything.
const dlpack::Exchange* exchange_of(nb::handle x) {
  const nb::object own = x.type().attr("__dict__").attr("get")(dlpack::kAttribute, nb::none());
  if (!PyCapsule_IsValid(own.ptr(), dlpack::kCapsule)) return nullptr;
  const auto* api = static_cast<const dlpack::Exchange*>(PyCapsule_GetPointer(own.ptr(), dlpack::kCapsule));
  while (api && api->major != dlpack::kMajor) api = api->previous;
  return api && api->read && api->current_stream ? api : nullptr;
}

// Read an array by DLPack's C interface, like read_dlpack, with the array itself as owner; return None if it has none.
// From now on `device`'s order stream waits for what the array's library has issued to its current stream of that
// device.
nb::object exchange(nb::object x, gpu::Device& device) {
  const dlpack::Exchange* api = exchange_of(x);
  if (!api) return nb::none();
  dlpack::Tensor t{};
  void* stream = nullptr;
  const auto here = [&] {
    return (t.device_kind == dlpack::kCuda || t.device_kind == dlpack::kManaged) && t.device_number == device.number();
  };
  // Some arrays, such as sparse ones, cannot be exported: `__dlpack__` reports why.
  if (api->read(x.ptr(), &t) != 0 || (here() && api->current_stream(t.device_kind, t.device_number, &stream) != 0)) {
    PyErr_Clear();
    return nb::none();
  }
  if (here())
    without_gil([&] {
      const gpu::Visit visit(&device);
      device.order_after(reinterpret_cast<uintptr_t>(stream));
    });
  std::vector<int64_t> shape(t.shape, t.shape + t.rank), strides(shape.size());
  const int64_t item = t.bits / 8 * t.lanes;
  int64_t whole = item;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = t.strides ? t.strides[i] * item : whole;
    whole *= shape[i];
  }
  return nb::make_tuple(reinterpret_cast<uintptr_t>(t.data) + t.byte_offset, nb::tuple(nb::cast(shape)),
                        nb::tuple(nb::cast(strides)), type_of(t.code, t.bits, t.lanes), t.device_number, x);
}

// Return the kind and number of the device of an array by DLPack's C interface, like `__dlpack_device__`; None if it
// has none.
nb::object place_of(nb::handle x) {
  const dlpack::Exchange* api = exchange_of(x);
  if (!api) return nb::none();
  dlpack::Tensor t{};
  if (api->read(x.ptr(), &t) == 0) return nb::make_tuple(t.device_kind, t.device_number);
  PyErr_Clear();
  return nb::none();
}

size_t count_elements(const DeviceArray& a) {
  size_t count = 1;
  for (const int64_t n : a.shape) count *= static_cast<size_t>(n);
  return count;
}

void copy_to_host(const DeviceArray& a, uint8_t* to) {
  const size_t bytes = count_elements(a) * static_cast<size_t>(size_of(a.dtype));
  const auto copy = [&] {
    const gpu::Visit visit(a.device.get());
    const gpu::WorkStream work_stream = a.device->next_work_stream();
    gpu::do_now(*a.device, work_stream,
                [&] { a.device->copy_out(work_stream, to, reinterpret_cast<gpu::Address>(a.data), bytes); });
  };
  if (bytes) without_gil(copy);
}

nb::bytes host_copy(const DeviceArray& a) {
  std::string content(count_elements(a) * static_cast<size_t>(size_of(a.dtype)), '\0');
  copy_to_host(a, reinterpret_cast<uint8_t*>(content.data()));
  return nb::bytes(content.data(), content.size());
}

// Return a copy as a NumPy array; bfloat16 as float32.
nb::object host_array(const DeviceArray& a) {
  const bool widen = a.dtype == DType::BF16;
  View v;
  v.dtype = widen ? DType::F32 : a.dtype;
  v.rank = static_cast<int32_t>(a.shape.size());
  std::copy(a.shape.begin(), a.shape.end(), v.shape);
  v.set_contiguous_strides();
  const size_t count = count_elements(a);
  auto* const content = new uint8_t[count * static_cast<size_t>(size_of(v.dtype)) + 1];
  const nb::capsule owner(content, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  v.data = content;
  copy_to_host(a, content);
  if (widen)
    for (size_t i = count; i-- > 0;) {  // from the end, because the halves lie in the memory of the floats
      uint16_t half;
      std::memcpy(&half, content + 2 * i, sizeof half);
      const uint32_t bits = uint32_t{half} << 16;
      std::memcpy(content + 4 * i, &bits, sizeof bits);
    }
  return array_over(v, owner, true);
}

std::string describe(const DeviceArray& a) {
  std::string shape;
  for (const int64_t n : a.shape) shape += std::to_string(n) + (a.shape.size() == 1 ? "," : ", ");
  if (a.shape.size() > 1) shape.resize(shape.size() - 2);
  const NumPyType type = numpy_type(a.dtype);
  const char* const kind = type.kind == 'u' ? "uint" : type.kind == 'i' ? "int" : type.kind == 'f' ? "float" : "bool";
  const std::string name = a.dtype == DType::BF16 ? "bfloat16"
                           : type.kind == 'b'     ? "bool"
                                                  : kind + std::to_string(8 * type.bytes);
  return "DeviceArray(" + name + " (" + shape + "), gpu)";
}

// A picture or statistics of a copy in host memory, for notebooks.
nb::object as_html(const DeviceArray& a) {
  return nb::module_::import_("stoker.display.rows").attr("tensor_as_html")(describe(a), host_array(a), "");
}

}  // namespace

std::shared_ptr<jpeg::gpu::Index> make_jpeg_index(std::shared_ptr<gpu::Device> device, size_t limit_bytes) {
  const auto allocate = [device](size_t bytes) {
    const gpu::Visit visit(device.get());
    return device->allocate(bytes);
  };
  return std::make_shared<jpeg::gpu::Index>(limit_bytes, allocate, [device](gpu::Address a) { device->free(a); });
}

nb::bytes pack_index(const jpeg::gpu::Index& index, gpu::Device& device, size_t begin, size_t end) {
  const std::string packed = without_gil([&] {
    const gpu::Visit visit(&device);
    const gpu::WorkStream work_stream = device.next_work_stream();
    return index.packed(begin, end, [&](uint8_t* to, gpu::Address from, size_t bytes) {
      gpu::do_now(device, work_stream, [&] { device.copy_out(work_stream, to, from, bytes); });
    });
  });
  return nb::bytes(packed.data(), packed.size());
}

size_t unpack_index(jpeg::gpu::Index& index, gpu::Device& device, const nb::bytes& packed) {
  const std::string_view bytes(packed.c_str(), packed.size());
  return without_gil([&] {
    const gpu::Visit visit(&device);
    // The copy must be complete before an entry counts as known, since any stream may read it.
    return index.unpack(bytes, [&](gpu::Address to, const uint8_t* from, size_t count) {
      device.copy_in(to, from, count);
      gpu::wait_and_forget(device, device.record_copies());
    });
  });
}

void bind_gpu(nb::module_& m) {
  nb::module_ gpu_module = m.def_submodule("gpu", "Devices, compiled kernels and device memory.");
  nb::exception<gpu::DeviceFailure>(gpu_module, "DeviceFailure", PyExc_RuntimeError);
  nb::class_<gpu::Function>(gpu_module, "Function").def_prop_ro("name", [](const gpu::Function& f) { return f.name; });
  nb::class_<gpu::Module>(gpu_module, "Module")
      .def(
          "function",
          [](gpu::Module& module, const std::string& name, uint32_t dynamic_shared_bytes) {
            return std::const_pointer_cast<gpu::Function>(
                without_gil([&] { return module.function(name, dynamic_shared_bytes); }));
          },
          nb::arg("name"), nb::arg("dynamic_shared_bytes") = 0, nb::keep_alive<0, 1>());
  nb::class_<gpu::Device>(gpu_module, "Device")
      .def_prop_ro("number", &gpu::Device::number)
      .def_prop_ro("name", &gpu::Device::name)
      .def_rw("separate_allocations", &gpu::Device::separate_allocations)
      .def_prop_ro("architecture", &gpu::Device::architecture)
      .def_prop_ro("order_stream", &gpu::Device::order_stream)
      .def("run", &run_launches, nb::arg("work"), nb::arg("stream").none())
      .def_prop_ro("free_bytes",
                   [](gpu::Device& d) {
                     return without_gil([&] {
                       const gpu::Visit visit(&d);
                       return d.free_bytes();
                     });
                   })
      .def("find", &gpu::Device::find, nb::arg("name"))
      .def(
          "load",
          [](gpu::Device& d, nb::bytes image, const std::string& name) {
            const char* const data = image.c_str();
            const size_t bytes = image.size();
            return without_gil([&] { return d.load(data, bytes, name); });
          },
          nb::arg("image"), nb::arg("name") = "");
  nb::class_<gpu::GpuWithCpuFallback, stoker::Kernel>(gpu_module, "GpuWithCpuFallback")
      .def(nb::new_([](const std::shared_ptr<stoker::Kernel>& on_gpu, std::shared_ptr<stoker::Kernel> on_cpu) {
             auto device = std::dynamic_pointer_cast<gpu::Kernel>(on_gpu);
             if (!device) throw std::invalid_argument("expected a kernel for GPUs, got one for the CPU");
             return std::make_shared<gpu::GpuWithCpuFallback>(std::move(device), std::move(on_cpu));
           }),
           nb::arg(), nb::arg())
      .def_prop_rw("cpu_share", &gpu::GpuWithCpuFallback::cpu_share, &gpu::GpuWithCpuFallback::set_cpu_share)
      .def_prop_ro("rows_on_gpu", &gpu::GpuWithCpuFallback::rows_on_gpu)
      .def_prop_ro("rows_on_cpu", &gpu::GpuWithCpuFallback::rows_on_cpu)
      .def_prop_ro("rows_without_memory", &gpu::GpuWithCpuFallback::rows_without_memory)
      .def_prop_ro("cpu_ns", &gpu::GpuWithCpuFallback::cpu_ns)
      .def_prop_ro("reasons", &gpu::GpuWithCpuFallback::reasons);
  nb::class_<jpeg::gpu::Index>(gpu_module, "JpegIndex")
      .def_prop_ro("files", &jpeg::gpu::Index::files)
      // The driver is called under the lock that these wait for.
      .def_prop_ro("slots", [](const jpeg::gpu::Index& i) { return without_gil([&] { return i.slots(); }); })
      .def_prop_ro_static("record_bytes", [](nb::handle) { return jpeg::gpu::Index::record_bytes(); })
      .def("packed", &pack_index)
      .def("unpack", &unpack_index)
      .def_prop_ro("bytes", [](const jpeg::gpu::Index& i) { return without_gil([&] { return i.bytes(); }); })
      .def_prop_ro("rows_read", &jpeg::gpu::Index::rows_read)
      .def_prop_ro("rows_in_part", &jpeg::gpu::Index::rows_in_part)
      .def_prop_ro("rows_wrong", &jpeg::gpu::Index::rows_wrong);
  gpu_module.def("jpeg_index", &make_jpeg_index);
  nb::class_<gpu::FileReads>(gpu_module, "FileReads")
      .def(nb::new_([](const std::shared_ptr<gpu::Device>& device, int cufile, const std::string& library, size_t piece,
                       int buffers) {
             if (cufile < 0 || cufile > static_cast<int>(gpu::FileReads::CuFile::On))
               throw nb::value_error("expected 0 (off), 1 (auto) or 2 (on) for `cufile`");
             const auto use = static_cast<gpu::FileReads::CuFile>(cufile);
             return without_gil([&] {
               return std::make_shared<gpu::FileReads>(device, use, library, gpu::FileReads::Buffers{piece, buffers});
             });
           }),
           nb::arg("device"), nb::arg("cufile"), nb::arg("library"), nb::arg("piece"), nb::arg("buffers"))
      .def_prop_ro("has_failed", &gpu::FileReads::has_failed)
      .def("report", [](const gpu::FileReads& reads) {
        const gpu::FileReads::Report r = reads.report();
        const gpu::BounceReads::Times& staged = r.staged;
        return nb::make_tuple(static_cast<int>(r.state), nb::make_tuple(r.direct.reads, r.direct.bytes, r.direct.ns),
                              nb::make_tuple(staged.reads, staged.bytes, staged.ns, staged.file_ns, staged.await_ns),
                              r.reason);
      });
  nb::class_<gpu::MemoryQuota>(gpu_module, "MemoryQuota")
      .def(
          "__init__", [](gpu::MemoryQuota* self, uint64_t limit) { (new (self) gpu::MemoryQuota)->limit = limit; },
          nb::arg("limit"))
      .def_prop_rw(
          "limit", [](const gpu::MemoryQuota& a) { return a.limit.load(); },
          [](gpu::MemoryQuota& a, uint64_t limit) { a.limit = limit; })
      .def_prop_ro("taken", [](const gpu::MemoryQuota& a) { return a.taken.load(); });
  bind_nvjpeg(gpu_module);
  bind_kernels(gpu_module, registry::Target::Gpu);
  gpu_module.def("read_dlpack", &read_dlpack);
  gpu_module.def("exchange", &exchange);
  gpu_module.def("place_of", &place_of, nb::arg().none());
  gpu_module.def("row_table", &row_table, nb::arg("rows"), nb::arg("stream"));
  gpu_module.def(
      "open_cuda",
      [](int number, unsigned multiprocessors) {
        return without_gil([&] { return gpu::open_cuda(number, multiprocessors); });
      },
      nb::arg("number"), nb::arg("multiprocessors") = 0);
  // Devices without an owner: close them now, after other seconds than ten, or with their release from now on.
  gpu_module.def("close_idle", [] { return without_gil([] { return gpu::IdleDevices::of_process().close_now(); }); });
  gpu_module.def(
      "set_idle_seconds",
      [](double seconds) { gpu::IdleDevices::of_process().set_seconds(gpu::IdleDevices::Seconds(seconds)); },
      nb::arg("seconds"));
  gpu_module.def("end_idle", [] { without_gil([] { gpu::IdleDevices::of_process().end(); }); });
  gpu_module.def("open_null", &gpu::open_null);
  gpu_module.def("is_null_device_current", &gpu::is_null_device_current);
  gpu_module.def("set_null_driver_bytes", &gpu::set_null_driver_bytes, nb::arg("bytes"));
  gpu_module.def("count_cuda", [] { return without_gil(gpu::count_cuda); });
  nb::class_<DeviceArray> array(gpu_module, "DeviceArray");
  array
      .def_prop_ro("shape",
                   [](const DeviceArray& a) {
                     nb::list shape;
                     for (const int64_t n : a.shape) shape.append(n);
                     return nb::tuple(shape);
                   })
      .def_prop_ro("dtype", [](const DeviceArray& a) { return static_cast<int>(a.dtype); })
      .def_prop_ro("pointer", [](const DeviceArray& a) { return reinterpret_cast<uintptr_t>(a.data); })
      .def_prop_ro("device_id", [](const DeviceArray& a) { return a.device->number(); })
      .def("row",
           [](const DeviceArray& a, int64_t i) {
             if (a.shape.empty() || i < 0 || i >= a.shape[0]) throw nb::index_error();
             DeviceArray row = a;
             row.shape.erase(row.shape.begin());
             int64_t bytes = size_of(a.dtype);
             for (const int64_t n : row.shape) bytes *= n;
             row.data += i * bytes;
             return row;
           })
      .def("first",
           [](const DeviceArray& a, int64_t rows) {
             if (a.shape.empty() || rows < 0 || rows > a.shape[0]) throw nb::index_error();
             DeviceArray part = a;
             part.shape[0] = rows;
             return part;
           })
      .def("to_host", &host_copy)
      .def("__repr__", &describe)
      .def("_repr_html_", &as_html)
      .def(
          "__dlpack__",
          [](nb::handle self, nb::object stream, const nb::kwargs&) {
            return capsule(nb::cast<DeviceArray&>(self), self, stream);
          },
          nb::arg("stream") = nb::none(), nb::arg("kwargs"))
      .def("__dlpack_device__",
           [](const DeviceArray& a) {
             const int device = a.device->number();
             return device < 0 ? nb::make_tuple(1, 0) : nb::make_tuple(2, device);
           })
      .def_prop_ro("__cuda_array_interface__", &cuda_interface);
  bind_device_arrays(gpu_module, array);
  bind_host_call(gpu_module);
  bind_tiered_function(gpu_module);
  bind_nvdec(gpu_module);
}

DeviceArray stack_on_device(Engine& engine, const std::vector<DeviceArray>& rows) {
  DeviceArray whole;
  whole.device = engine.device();
  whole.dtype = rows.at(0).dtype;
  whole.shape = rows[0].shape;
  size_t bytes = static_cast<size_t>(size_of(whole.dtype));
  for (const int64_t n : whole.shape) bytes *= static_cast<size_t>(n);
  whole.shape.insert(whole.shape.begin(), static_cast<int64_t>(rows.size()));
  whole.block =
      std::make_shared<BlockPool::Block>(without_gil([&] { return engine.allocate_on_device(bytes * rows.size()); }));
  whole.data = whole.block->data;
  std::vector<Engine::Move> moves;
  gpu::Address to = reinterpret_cast<gpu::Address>(whole.data);
  for (const DeviceArray& row : rows) {
    if (row.shape != rows[0].shape || row.dtype != whole.dtype) throw nb::value_error("expected rows of one shape");
    moves.push_back({to, reinterpret_cast<gpu::Address>(row.data), bytes});
    to += bytes;
  }
  const uintptr_t after = std::exchange(whole.block->stream, BlockPool::kNoStream);
  without_gil([&] { engine.move_on_device(moves, after); });
  return whole;
}

nb::object device_output(Job* job, const Value& value, OutputMemory& memory,
                         const std::shared_ptr<gpu::Device>& device) {
  DeviceArray whole;
  whole.device = device;
  whole.block = std::make_shared<BlockPool::Block>(std::move(memory.block));
  whole.data = memory.data;
  whole.dtype = value.dtype;
  const auto extents = [&](int64_t row) {
    const int64_t* first = memory.shapes.data() + row * value.rank;
    return std::vector<int64_t>(first, first + value.rank);
  };
  if (memory.dense) {
    whole.shape = job->rows ? extents(0) : std::vector<int64_t>(static_cast<size_t>(value.rank));
    whole.shape.insert(whole.shape.begin(), job->rows);
    return nb::cast(std::move(whole));
  }
  nb::list rows;
  for (int64_t r = 0; r < job->rows; ++r) {
    DeviceArray row = whole;
    row.data += memory.offsets[static_cast<size_t>(r)];
    row.shape = extents(r);
    rows.append(nb::cast(std::move(row)));
  }
  return rows;
}

}  // namespace stoker
