// SPDX-License-Identifier: Apache-2.0
// Bindings of outputs in device memory, for bind/engine.cpp.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "kernels/registry.hpp"
#include "run/engine.hpp"

namespace stoker {

// Contiguous device memory that a consumer holds. After the batch's work is done, nothing waits for it. The stream on
// which the consumer reads it is recorded, so that the next writer waits for that stream.
struct DeviceArray {
  std::shared_ptr<gpu::Device> device;
  std::shared_ptr<BlockPool::Block> block;
  uint8_t* data = nullptr;
  DType dtype = DType::U8;
  std::vector<int64_t> shape;
};

// Stack several arrays of one shape and type into one.
DeviceArray stack_on_device(Engine& engine, const std::vector<DeviceArray>& rows);
// Return one array if all rows have one shape, else a list.
nanobind::object device_output(Job* job, const Value& value, OutputMemory& memory,
                               const std::shared_ptr<gpu::Device>& device);
void bind_gpu(nanobind::module_& m);
void bind_host_call(nanobind::module_& gpu_module);
void bind_tiered_function(nanobind::module_& gpu_module);
void bind_device_arrays(nanobind::module_& gpu_module, nanobind::class_<DeviceArray>& array);
void bind_nvdec(nanobind::module_& gpu_module);
void bind_nvjpeg(nanobind::module_& gpu_module);
// Bind the registered constructors as functions of `m`.
void bind_kernels(nanobind::module_& m, registry::Target on);

}  // namespace stoker
