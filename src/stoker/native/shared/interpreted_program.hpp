// SPDX-License-Identifier: Apache-2.0
// Program of a stage without an interpolator as data, for the GPU's interpreter: written by
// gpu_kernels/interpreted_stage.cpp, read by device/stage_interpreted.cuh.
#pragma once
#include <cstdint>

namespace stoker::stage {

constexpr int kInterpretedSteps = 96;    // at most; every step computes one value
constexpr int kInterpretedPorts = 16;    // inputs and outputs
constexpr int kInterpretedLanes = 1024;  // of a block

// One operation. A negative operand n is uniform -1 - n of the row, any other one the value that step n computed.
struct InterpretedStep {
  uint8_t op;       // pixel::Op
  uint8_t type;     // pixel::Type of the operation
  uint8_t from;     // pixel::Type of a conversion's operand
  uint8_t element;  // DType of an access or of a conversion
  uint8_t port;     // of an access, numbered through inputs and outputs
  uint8_t channel;
  int16_t a, b, c;
  uint32_t unused;
};
static_assert(sizeof(InterpretedStep) == 16);

// The steps follow: loads, then operations, then stores.
struct InterpretedProgram {
  int32_t steps, ports;
  int32_t flat;  // lanes are elements, not pixels
  int32_t unused;
};

}  // namespace stoker::stage
