// SPDX-License-Identifier: Apache-2.0
// GPU row descriptors of operators with their own kernel: written by gpu_kernels/own.cpp, read by own.cuh. A row's
// descriptor consists of a Slot, a Port per input and output, and the step's numbers as doubles. If a pixel program
// computes some of the kernel's inputs, a ProgramInput per input of the program follows, and the program's uniforms, 8 bytes
// each, converted to the type in which the program uses them.
#pragma once
#include <cstdint>

namespace stoker::own {

constexpr int kAxes = 8;
constexpr int kThreads = 256;  // threads of a block, unless a pass overrides it

struct Slot {
  uint64_t scratch;  // device memory of the row, 256-byte aligned; 0: the kernel requested none
  int64_t ports;
  uint64_t fault;    // address of a word that is zero until the kernel has failed the row; 0: the kernel does not
  uint64_t program;  // offset in the descriptor of the program's inputs; 0: there is no program
};

// Memory layout of a tensor; strides are in bytes.
struct Port {
  uint64_t data;
  int64_t rank;
  int64_t shape[kAxes], stride[kAxes];
};

// Input of a pixel program: the address and strides on the last three axes of the values that the program computes, F, H
// and W. The stride is 0 along an axis that the input is broadcast to. Coordinates have no address.
struct ProgramInput {
  uint64_t data;
  int64_t stride[3];
};

}  // namespace stoker::own
