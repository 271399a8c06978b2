// SPDX-License-Identifier: Apache-2.0
// What bind_engine.cpp hands over for outputs in device memory.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "engine.hpp"

namespace stoker {

// Contiguous device memory that a consumer holds. Once its work is done nothing is waited for; the stream on which the
// consumer reads it is remembered, so that who writes there next follows it.
struct DeviceArray {
  std::shared_ptr<gpu::Device> device;
  std::shared_ptr<BlockPool::Block> block;
  uint8_t* data = nullptr;
  DType dtype = DType::U8;
  std::vector<int64_t> shape;
};

// One array out of several of one shape and type.
DeviceArray stack_on_device(Engine& engine, const std::vector<DeviceArray>& rows);
// One array for rows of one shape, else a list.
nanobind::object device_output(Job* job, const Value& value, OutputMemory& memory,
                               const std::shared_ptr<gpu::Device>& device);
void bind_gpu(nanobind::module_& m);
void bind_nvjpeg(nanobind::module_& gpu_module);

}  // namespace stoker
