// SPDX-License-Identifier: Apache-2.0
// How a row of an operator with its own kernel describes itself to the GPU: written by own_gpu.cpp, read by own.cuh. One
// row's slot is Slot, then a Port per input and output, then the step's numbers as doubles.
#pragma once
#include <cstdint>

namespace stoker::own {

constexpr int kAxes = 8;
constexpr int kThreads = 256;  // of a block

struct Slot {
  uint64_t scratch;  // device memory of the row, 256-byte aligned; 0: none was asked for
  int64_t ports;
};

// A tensor as it lies in memory: strides are in bytes.
struct Port {
  uint64_t data;
  int64_t rank;
  int64_t shape[kAxes], stride[kAxes];
};

// One block's work: which of a row's blocks it is.
struct Work {
  uint32_t row, block;
};

}  // namespace stoker::own
