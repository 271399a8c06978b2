// SPDX-License-Identifier: Apache-2.0
// Code outside of the engine that issues a step's work for a whole batch to its stream, such as a function in Python.
#pragma once
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"

namespace stoker::gpu {

class HostCall {
 public:
  // Contiguous device memory of one row.
  struct Row {
    std::vector<View> outputs, inputs;
  };
  HostCall() = default;
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  virtual ~HostCall() = default;
  // Threads of the engine call this. The memory is the rows' until the work on the stream is done. Throws DeviceFailure,
  // which fails the batch.
  virtual void issue(uintptr_t stream, const std::vector<Row>& rows) const = 0;
};

}  // namespace stoker::gpu
