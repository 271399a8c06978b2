// SPDX-License-Identifier: Apache-2.0
// Devices, compiled kernels and device memory, as the planner and the executor see them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_arrays.hpp"
#include "bind_gpu.hpp"
#include "dlpack_exchange.hpp"
#include "gpu_either.hpp"
#include "gpu_job.hpp"
#include "jpeg_gpu.hpp"
#include "jpeg_parts.hpp"
#include "kernels.hpp"
#include "own_gpu.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

constexpr uintptr_t kLegacyStream = 1;  // also what DLPack and the driver call it
// The default stream of whichever thread names it, and ours is another thread: the legacy one waits for those of all.
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

nb::object capsule(DeviceArray& a, nb::handle self, nb::object stream) {
  const int64_t told = stream.is_none() ? 0 : nb::cast<int64_t>(stream);
  a.block->stream = told < 1 || told == kThreadsStream ? kLegacyStream : static_cast<uintptr_t>(told);
  std::vector<size_t> shape(a.shape.begin(), a.shape.end());
  const int device = a.device->number();
  nb::ndarray<> array(a.data, shape.size(), shape.data(), self, nullptr, dlpack_of(a.dtype),
                      device < 0 ? nb::device::cpu::value : nb::device::cuda::value, device < 0 ? 0 : device);
  const nb::object made = nb::cast(array);  // a capsule, or what gives one, as versions of nanobind have it
  return nb::hasattr(made, "__dlpack__") ? made.attr("__dlpack__")() : made;
}

nb::dict cuda_interface(DeviceArray& a) {
  if (a.dtype == DType::BF16) throw nb::attribute_error("CUDA's array interface has no bfloat16; DLPack has");
  a.block->stream = kLegacyStream;
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

int type_of(uint8_t code, uint8_t bits, uint16_t lanes) {  // -1: none of ours
  for (int t = 0; t <= static_cast<int>(DType::BF16); ++t) {
    const auto have = dlpack_of(static_cast<DType>(t));
    if (have.code == code && have.bits == bits && lanes == 1) return t;
  }
  return -1;
}

// What a DLPack capsule shows: (address, shape, strides in bytes, element type or -1, device's number, owner).
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

// DLPack's C interface of exactly this type; null if it has none that is known here. A type that is derived from one that
// has it may be anything.
const dlpack::Exchange* exchange_of(nb::handle x) {
  const nb::object own = x.type().attr("__dict__").attr("get")(dlpack::kAttribute, nb::none());
  if (!PyCapsule_IsValid(own.ptr(), dlpack::kCapsule)) return nullptr;
  const auto* api = static_cast<const dlpack::Exchange*>(PyCapsule_GetPointer(own.ptr(), dlpack::kCapsule));
  while (api && api->major != dlpack::kMajor) api = api->previous;
  return api && api->read && api->current_stream ? api : nullptr;
}

// What an array shows of itself by DLPack's C interface, as read_dlpack, with itself as owner; None if it cannot.
// `device`'s order stream waits from now on for what the array's library has issued to its current stream of that device.
nb::object exchange(nb::object x, gpu::Device& device) {
  const dlpack::Exchange* api = exchange_of(x);
  if (!api) return nb::none();
  dlpack::Tensor t{};
  void* stream = nullptr;
  const auto here = [&] {
    return (t.device_kind == dlpack::kCuda || t.device_kind == dlpack::kManaged) && t.device_number == device.number();
  };
  // A sparse one, say, cannot be shown: `__dlpack__` tells why.
  if (api->read(x.ptr(), &t) != 0 || (here() && api->current_stream(t.device_kind, t.device_number, &stream) != 0)) {
    PyErr_Clear();
    return nb::none();
  }
  if (here()) {
    const gpu::Visit visit(&device);
    device.order_after(reinterpret_cast<uintptr_t>(stream));
  }
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

// On which kind of device an array is, and the device's number, by DLPack's C interface: as `__dlpack_device__` says. None
// if it cannot tell.
nb::object place_of(nb::handle x) {
  const dlpack::Exchange* api = exchange_of(x);
  if (!api) return nb::none();
  dlpack::Tensor t{};
  if (api->read(x.ptr(), &t) == 0) return nb::make_tuple(t.device_kind, t.device_number);
  PyErr_Clear();
  return nb::none();
}

nb::bytes host_copy(const DeviceArray& a) {
  size_t bytes = static_cast<size_t>(size_of(a.dtype));
  for (const int64_t n : a.shape) bytes *= static_cast<size_t>(n);
  std::string content(bytes, '\0');
  if (bytes) {
    const gpu::Visit visit(a.device.get());
    const gpu::Lane lane = a.device->next_lane();
    gpu::do_now(*a.device, lane, [&] {
      a.device->copy_out(lane, reinterpret_cast<uint8_t*>(content.data()), reinterpret_cast<gpu::Address>(a.data), bytes);
    });
  }
  return nb::bytes(content.data(), content.size());
}

}  // namespace

std::shared_ptr<jpeg::gpu::Index> make_jpeg_index(std::shared_ptr<gpu::Device> device, size_t limit_bytes) {
  const auto allocate = [device](size_t bytes) {
    const gpu::Visit visit(device.get());
    return device->allocate(bytes);
  };
  return std::make_shared<jpeg::gpu::Index>(limit_bytes, allocate, [device](gpu::Address a) { device->free(a); });
}

using Functions = std::vector<std::shared_ptr<gpu::Function>>;
using SharedIndex = std::shared_ptr<jpeg::gpu::Index>;
using SharedTable = std::shared_ptr<FileTable>;

nb::bytes pack_index(const jpeg::gpu::Index& index, gpu::Device& device, size_t begin, size_t end) {
  std::string packed;
  {
    nb::gil_scoped_release others_run;
    const gpu::Visit visit(&device);
    const gpu::Lane lane = device.next_lane();
    packed = index.packed(begin, end, [&](uint8_t* to, gpu::Address from, size_t bytes) {
      gpu::do_now(device, lane, [&] { device.copy_out(lane, to, from, bytes); });
    });
  }
  return nb::bytes(packed.data(), packed.size());
}

size_t unpack_index(jpeg::gpu::Index& index, gpu::Device& device, const nb::bytes& packed) {
  const std::string_view bytes(packed.c_str(), packed.size());
  nb::gil_scoped_release others_run;
  const gpu::Visit visit(&device);
  // An entry is known when it is there, whichever stream then reads it.
  return index.unpack(bytes, [&](gpu::Address to, const uint8_t* from, size_t count) {
    device.copy_in(to, from, count);
    gpu::wait_and_forget(device, device.record_copies());
  });
}

// The decoder on a GPU, and the CPU's for what that one leaves.
std::shared_ptr<gpu::Either> make_decode_on_gpu(const Functions& kernels, bool adjust, int format, int scale_log2,
                                                SharedIndex index, std::shared_ptr<const jpeg::gpu::Source> source) {
  jpeg::gpu::Functions functions;
  for (const auto& kernel : kernels)
    for (size_t i = 0; i < functions.size(); ++i)
      if (kernel->name == jpeg::gpu::kFunctionNames[i]) functions[i] = kernel;
  for (size_t i = 0; i < functions.size(); ++i)
    if (!functions[i]) throw std::invalid_argument(std::string("the decoder lacks ") + jpeg::gpu::kFunctionNames[i]);
  const auto colours = static_cast<jpeg::Format>(format);
  auto on_gpu = jpeg::gpu::make_decode(adjust, colours, std::move(functions), {}, scale_log2, std::move(index),
                                       source != nullptr, source);
  return std::make_shared<gpu::Either>(std::move(on_gpu), make_decode(adjust, colours, scale_log2));
}

void bind_gpu(nb::module_& m) {
  nb::module_ gpu_module = m.def_submodule("gpu", "Devices, compiled kernels and device memory.");
  nb::exception<gpu::DeviceFailure>(gpu_module, "DeviceFailure", PyExc_RuntimeError);
  nb::class_<gpu::Function>(gpu_module, "Function").def_prop_ro("name", [](const gpu::Function& f) { return f.name; });
  nb::class_<gpu::Module>(gpu_module, "Module")
      .def("function", [](gpu::Module& module, const std::string& name, uint32_t dynamic_shared_bytes) {
        return std::const_pointer_cast<gpu::Function>(module.function(name, dynamic_shared_bytes));
      }, nb::arg("name"), nb::arg("dynamic_shared_bytes") = 0, nb::keep_alive<0, 1>());
  nb::class_<gpu::Device>(gpu_module, "Device")
      .def_prop_ro("number", &gpu::Device::number)
      .def_prop_ro("name", &gpu::Device::name)
      .def_rw("apart", &gpu::Device::apart)
      .def_prop_ro("architecture", &gpu::Device::architecture)
      .def_prop_ro("order_stream", &gpu::Device::order_stream)
      .def_prop_ro("free_bytes", [](gpu::Device& d) {
        const gpu::Visit visit(&d);
        return d.free_bytes();
      })
      .def("load", [](gpu::Device& d, nb::bytes image) { return d.load(image.c_str(), image.size()); });
  nb::class_<gpu::Either, stoker::Kernel>(gpu_module, "Either")
      .def_prop_rw("cpu_share", &gpu::Either::cpu_share, &gpu::Either::set_cpu_share)
      .def_prop_ro("rows_on_gpu", &gpu::Either::rows_on_gpu)
      .def_prop_ro("rows_on_cpu", &gpu::Either::rows_on_cpu)
      .def_prop_ro("rows_without_room", &gpu::Either::rows_without_room)
      .def_prop_ro("cpu_ns", &gpu::Either::cpu_ns)
      .def_prop_ro("reasons", &gpu::Either::reasons);
  nb::class_<jpeg::gpu::Index>(gpu_module, "JpegIndex")
      .def_prop_ro("files", &jpeg::gpu::Index::files)
      .def_prop_ro("slots", &jpeg::gpu::Index::slots)
      .def_prop_ro_static("record_bytes", [](nb::handle) { return jpeg::gpu::Index::record_bytes(); })
      .def("packed", &pack_index)
      .def("unpack", &unpack_index)
      .def_prop_ro("bytes", &jpeg::gpu::Index::bytes)
      .def_prop_ro("rows_read", &jpeg::gpu::Index::rows_read)
      .def_prop_ro("rows_in_part", &jpeg::gpu::Index::rows_in_part)
      .def_prop_ro("rows_wrong", &jpeg::gpu::Index::rows_wrong);
  gpu_module.def("jpeg_index", &make_jpeg_index);
  gpu_module.def("decode", [](const Functions& kernels, bool adjust, int format, int scale_log2, SharedIndex index) {
    return make_decode_on_gpu(kernels, adjust, format, scale_log2, std::move(index), nullptr);
  }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  gpu_module.def("decode", [](const Functions& kernels, bool adjust, int format, int scale_log2, SharedTable table,
                              int reader, SharedIndex index) {
    return make_decode_on_gpu(kernels, adjust, format, scale_log2, std::move(index),
                              jpeg::gpu::make_source(std::move(table), reader));
  });
  gpu_module.def("read_header", [](SharedTable table, int reader, SharedIndex index) {
    return jpeg::gpu::make_read_header(std::move(table), reader, std::move(index));
  });
  gpu_module.def("read_window", [](SharedTable table, int reader, bool adjust, int format, int scale_log2,
                                   SharedIndex index) {
    return jpeg::gpu::make_read_window(std::move(table), reader, adjust, static_cast<jpeg::Format>(format), scale_log2,
                                       std::move(index));
  });
  gpu_module.def("own", [](const std::vector<std::shared_ptr<gpu::Function>>& passes, int inputs, int outputs, int numbers) {
    return std::shared_ptr<stoker::Kernel>(gpu::make_own({passes.begin(), passes.end()}, inputs, outputs, numbers));
  });
  nb::class_<gpu::Account>(gpu_module, "Account")
      .def("__init__", [](gpu::Account* self, uint64_t limit) { (new (self) gpu::Account)->limit = limit; }, nb::arg("limit"))
      .def_rw("limit", &gpu::Account::limit)
      .def_prop_ro("taken", [](const gpu::Account& a) { return a.taken.load(); });
  bind_nvjpeg(gpu_module);
  gpu_module.def("read_dlpack", &read_dlpack);
  gpu_module.def("exchange", &exchange);
  gpu_module.def("place_of", &place_of, nb::arg().none());
  gpu_module.def("open_cuda", &gpu::open_cuda, nb::arg("number"), nb::call_guard<nb::gil_scoped_release>());
  gpu_module.def("open_null", &gpu::open_null);
  gpu_module.def("uses_null", &gpu::uses_null);
  gpu_module.def("null_keeps", &gpu::null_keeps, nb::arg("bytes"));
  gpu_module.def("count_cuda", &gpu::count_cuda, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<DeviceArray>(gpu_module, "DeviceArray")
      .def_prop_ro("shape", [](const DeviceArray& a) {
        nb::list shape;
        for (const int64_t n : a.shape) shape.append(n);
        return nb::tuple(shape);
      })
      .def_prop_ro("dtype", [](const DeviceArray& a) { return static_cast<int>(a.dtype); })
      .def_prop_ro("pointer", [](const DeviceArray& a) { return reinterpret_cast<uintptr_t>(a.data); })
      .def_prop_ro("device_id", [](const DeviceArray& a) { return a.device->number(); })
      .def("row", [](const DeviceArray& a, int64_t i) {
        if (a.shape.empty() || i < 0 || i >= a.shape[0]) throw nb::index_error();
        DeviceArray row = a;
        row.shape.erase(row.shape.begin());
        int64_t bytes = size_of(a.dtype);
        for (const int64_t n : row.shape) bytes *= n;
        row.data += i * bytes;
        return row;
      })
      .def("first", [](const DeviceArray& a, int64_t rows) {
        if (a.shape.empty() || rows < 0 || rows > a.shape[0]) throw nb::index_error();
        DeviceArray part = a;
        part.shape[0] = rows;
        return part;
      })
      .def("to_host", &host_copy)
      .def("__dlpack__", [](nb::handle self, nb::object stream, const nb::kwargs&) {
        return capsule(nb::cast<DeviceArray&>(self), self, stream);
      }, nb::arg("stream") = nb::none(), nb::arg("kwargs"))
      .def("__dlpack_device__", [](const DeviceArray& a) {
        const int device = a.device->number();
        return device < 0 ? nb::make_tuple(1, 0) : nb::make_tuple(2, device);
      })
      .def_prop_ro("__cuda_array_interface__", &cuda_interface);
}

DeviceArray stack_on_device(Engine& engine, const std::vector<DeviceArray>& rows) {
  DeviceArray whole;
  whole.device = engine.device();
  whole.dtype = rows.at(0).dtype;
  whole.shape = rows[0].shape;
  size_t bytes = static_cast<size_t>(size_of(whole.dtype));
  for (const int64_t n : whole.shape) bytes *= static_cast<size_t>(n);
  whole.shape.insert(whole.shape.begin(), static_cast<int64_t>(rows.size()));
  whole.block = std::make_shared<BlockPool::Block>(engine.room_on_device(bytes * rows.size()));
  whole.data = whole.block->data;
  std::vector<Engine::Move> moves;
  gpu::Address to = reinterpret_cast<gpu::Address>(whole.data);
  for (const DeviceArray& row : rows) {
    if (row.shape != rows[0].shape || row.dtype != whole.dtype) throw nb::value_error("expected rows of one shape");
    moves.push_back({to, reinterpret_cast<gpu::Address>(row.data), bytes});
    to += bytes;
  }
  engine.move_on_device(moves, std::exchange(whole.block->stream, BlockPool::kNoStream));
  return whole;
}

nb::object device_output(Job* job, const Value& value, OutputMemory& memory, const std::shared_ptr<gpu::Device>& device) {
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
