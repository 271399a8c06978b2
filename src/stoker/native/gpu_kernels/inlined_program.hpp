// SPDX-License-Identifier: Apache-2.0
// Host side of a pixel program in an operator's own kernel: it computes the last inputs that the kernel's CPU form reads.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "kernels/stage.hpp"

namespace stoker::gpu {

class InlinedProgram {
 public:
  // `extents` has the parameters with the extents of the values that the program computes, `reads` (uniform,
  // pixel::Type) in the order of the generated code.
  InlinedProgram(StageSpec spec, std::vector<int32_t> extents, std::vector<std::pair<int32_t, int32_t>> reads);

  int inputs() const { return static_cast<int>(spec_.inputs.size()); }
  int outputs() const { return static_cast<int>(spec_.outputs.size()); }
  // Replace the declarations of the values that the program computes, the last of `in`, by those of its inputs.
  void declare(std::vector<PortRule>* in) const;
  // Check a step whose inputs from `first` on are the program's.
  void check(const StepFacts& step, size_t first) const;
  // Return a value that the program computes, without memory.
  View value(const Call& c) const;
  // Bytes of the program's part of a row's descriptor.
  size_t bytes() const;
  // Describe the program's inputs, which are the call's from `first` on. Return false with the reason in *c.error.
  bool describe(const Call& c, int first, uint8_t* to) const;

 private:
  int input_ports() const { return inputs() + static_cast<int>(spec_.coordinates.size()); }

  StageSpec spec_;
  std::vector<int32_t> extents_;
  std::vector<std::pair<int32_t, int32_t>> reads_;
};

}  // namespace stoker::gpu
