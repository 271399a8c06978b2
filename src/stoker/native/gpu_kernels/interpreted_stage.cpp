// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/interpreted_stage.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "shared/interpreted_program.hpp"

namespace stoker::stage {

namespace {

using pixel::Instr;
using pixel::Op;
using pixel::Type;

bool converts(Op op) { return op >= Op::Cvt && op <= Op::Wrap; }
bool reads_port(Op op) { return op == Op::Load || op == Op::Coordinate; }

// All loads precede all stores, because an output may be an input.
int order_of(Op op) { return reads_port(op) ? 0 : op == Op::Store ? 2 : 1; }

class Encoder {
 public:
  Encoder(const pixel::Program& program, const std::vector<std::pair<int32_t, int32_t>>& uniforms)
      : program_(program), uniforms_(uniforms) {}

  std::vector<InterpretedStep> steps() {
    // Every result has a step of its own, as registers may be reused. Steps are numbered before operands are resolved.
    const size_t count = program_.code.size();
    std::vector<int16_t> number(count);
    int16_t next = 0;
    for (int order = 0; order < 3; ++order)
      for (size_t i = 0; i < count; ++i)
        if (order_of(program_.code[i].op) == order) number[i] = next++;
    std::vector<InterpretedStep> steps(count);
    for (size_t i = 0; i < count; ++i) {
      const Instr& in = program_.code[i];
      steps[static_cast<size_t>(number[i])] = encoded(in);
      if (in.op != Op::Store) computed_[in.dst] = number[i];
    }
    return steps;
  }

 private:
  InterpretedStep encoded(const Instr& in) const {
    InterpretedStep step{};
    step.op = static_cast<uint8_t>(in.op);
    step.type = static_cast<uint8_t>(in.type);
    step.from = static_cast<uint8_t>(in.from);
    step.element = static_cast<uint8_t>(in.dtype);
    step.port = static_cast<uint8_t>(in.port + (in.op == Op::Store ? program_.inputs : 0));
    step.channel = in.channel;
    if (reads_port(in.op)) return step;
    const bool draws = in.op == Op::Random || in.op == Op::Normal || in.op == Op::Lookup;
    const Type type = converts(in.op) ? in.from : draws ? Type::I32 : in.type;
    step.a = operand(in.a, in.uniform & pixel::kUniformA, type, 0);
    // An operation does not read the operands that it lacks, so any value will do for them.
    step.b = operand(in.b, in.uniform & pixel::kUniformB, type, step.a);
    step.c = operand(in.c, in.uniform & pixel::kUniformC, Type::I32, step.a);
    return step;
  }

  int16_t operand(uint16_t index, bool is_uniform, Type type, int16_t otherwise) const {
    if (!is_uniform) {
      const auto found = computed_.find(index);
      return found == computed_.end() ? otherwise : found->second;
    }
    const std::pair<int32_t, int32_t> wanted{index, static_cast<int32_t>(type)};
    const auto found = std::find(uniforms_.begin(), uniforms_.end(), wanted);
    if (found == uniforms_.end()) throw std::invalid_argument("an interpreted program lacks one of its uniforms");
    return static_cast<int16_t>(-1 - (found - uniforms_.begin()));
  }

  const pixel::Program& program_;
  const std::vector<std::pair<int32_t, int32_t>>& uniforms_;
  std::map<uint16_t, int16_t> computed_;  // the step that computed a register last
};

}  // namespace

std::vector<uint8_t> interpreted_program(const pixel::Program& program,
                                         const std::vector<std::pair<int32_t, int32_t>>& uniforms) {
  if (program.code.size() > kInterpretedSteps)
    throw std::invalid_argument("expected at most " + std::to_string(kInterpretedSteps) +
                                " operations in an interpreted program, got " + std::to_string(program.code.size()));
  const std::vector<InterpretedStep> steps = Encoder(program, uniforms).steps();
  const InterpretedProgram head{static_cast<int32_t>(steps.size()), program.inputs + program.outputs,
                                program.channels == 0, 0};
  static_assert(2 * pixel::kMaxPorts <= kInterpretedPorts);
  std::vector<uint8_t> bytes(sizeof head + steps.size() * sizeof(InterpretedStep));
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, steps.data(), steps.size() * sizeof(InterpretedStep));
  return bytes;
}

}  // namespace stoker::stage
