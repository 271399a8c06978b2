// SPDX-License-Identifier: Apache-2.0
// GPU row descriptors of operators with their own kernel: written by gpu_kernels/own.cpp, read by own.cuh. A row's
// descriptor consists of a Slot, a Port per input and output, and the step's numbers as doubles.
#pragma once
#include <cstdint>

namespace stoker::own {

constexpr int kAxes = 8;
constexpr int kThreads = 256;  // threads of a block, unless a pass overrides it

struct Slot {
  uint64_t scratch;  // device memory of the row, 256-byte aligned; 0: the kernel requested none
  int64_t ports;
};

// Memory layout of a tensor; strides are in bytes.
struct Port {
  uint64_t data;
  int64_t rank;
  int64_t shape[kAxes], stride[kAxes];
};

}  // namespace stoker::own
