// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/inlined_program.hpp"

#include <algorithm>
#include <stdexcept>

#include "gpu_kernels/stage.hpp"
#include "gpu_kernels/stage_batch.hpp"
#include "kernels/stage_views.hpp"
#include "shared/own_slot.hpp"

namespace stoker::gpu {

namespace {

using own::ProgramInput;

constexpr int kAxes = 3;  // F, H, W

bool divides(const pixel::Program& program) {
  return std::any_of(program.code.begin(), program.code.end(),
                     [](const pixel::Instr& in) { return in.op >= pixel::Op::IDiv && in.op <= pixel::Op::UMod; });
}

}  // namespace

InlinedProgram::InlinedProgram(StageSpec spec, std::vector<int32_t> extents,
                               std::vector<std::pair<int32_t, int32_t>> reads)
    : spec_(std::move(spec)), extents_(std::move(extents)), reads_(std::move(reads)) {
  const auto is_empty = [](const std::vector<ViewOp>& ops) { return ops.empty(); };
  if (spec_.interpolator != Interpolator::None || spec_.program.channels > 0 || divides(spec_.program) ||
      !std::all_of(spec_.outputs.begin(), spec_.outputs.end(), is_empty))
    throw std::invalid_argument(
        "expected a flat program without a division of integers, an interpolator or views of "
        "outputs in an operator's own kernel");
  if (extents_.size() < 2 || extents_.size() > kAxes)
    throw std::invalid_argument("expected 2 or 3 extents of the values that a program computes");
}

void InlinedProgram::declare(std::vector<PortRule>* in) const {
  if (in->size() < spec_.outputs.size())
    throw std::invalid_argument("a program computes more inputs than the kernel has");
  in->resize(in->size() - spec_.outputs.size());
  for (const PortRule& rule : stage::ports_of(spec_).in) in->push_back(rule);
}

void InlinedProgram::check(const StepFacts& step, size_t first) const {
  const auto rank = static_cast<int32_t>(extents_.size());
  for (size_t i = 0; i < spec_.inputs.size(); ++i) {
    const std::string name = "input " + std::to_string(first + i);
    const int32_t have = check_views(spec_.inputs[i], step.in_rank(first + i), step, name);
    step.require(have <= rank, name, "at most " + std::to_string(rank) + " axes", std::to_string(have));
  }
  for (const int32_t p : extents_) step.require_param(p, "extents");
  for (const int32_t p : spec_.uniforms) step.require_param(p, "uniforms");
  for (const int32_t axis : spec_.coordinates)
    step.require(axis < rank, "coordinates", "one of " + std::to_string(rank) + " axes", std::to_string(axis));
}

View InlinedProgram::value(const Call& c) const {
  View v;
  v.dtype = spec_.program.output_dtype[0];
  v.rank = static_cast<int32_t>(extents_.size());
  for (int d = 0; d < v.rank; ++d) v.shape[d] = static_cast<int64_t>(c.params[extents_[static_cast<size_t>(d)]]);
  v.set_contiguous_strides();
  return v;
}

size_t InlinedProgram::bytes() const {
  return static_cast<size_t>(input_ports()) * sizeof(ProgramInput) + reads_.size() * sizeof(uint64_t);
}

bool InlinedProgram::describe(const Call& c, int first, uint8_t* to) const {
  View in[pixel::kMaxPorts];
  for (int i = 0; i < inputs(); ++i) {
    in[i] = *c.in[first + i];
    if (apply(spec_.inputs[static_cast<size_t>(i)], c.params, &in[i])) continue;
    *c.error = "the window leaves the tensor";
    return false;
  }
  const View space = value(c);
  if (!stage::spread(spec_, c.params, space, 0, in, c.error)) return false;
  auto* ports = reinterpret_cast<ProgramInput*>(to);
  for (int p = 0; p < input_ports(); ++p) {
    ports[p] = {};
    if (p >= inputs()) continue;  // a coordinate
    ports[p].data = stage::address_of(in[p]);
    for (int d = 0; d < std::min(space.rank, in[p].rank); ++d)
      ports[p].stride[kAxes - 1 - d] = in[p].stride[in[p].rank - 1 - d];
  }
  auto* uniforms = reinterpret_cast<uint64_t*>(ports + input_ports());
  for (const auto& [uniform, type] : reads_)
    *uniforms++ =
        stage::bits_of(c.params[spec_.uniforms[static_cast<size_t>(uniform)]], static_cast<pixel::Type>(type));
  return true;
}

}  // namespace stoker::gpu
