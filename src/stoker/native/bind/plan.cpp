// SPDX-License-Identifier: Apache-2.0
// Bindings of plans for the planner.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "bind/records.hpp"
#include "plan/plan.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using Ints = std::vector<int32_t>;
using KernelRef = std::shared_ptr<Kernel>;

ScalarCode scalar_code(const std::vector<std::tuple<int, int, int, int>>& code, std::vector<double> consts) {
  ScalarCode s;
  for (const auto& [op, a, b, c] : code) s.code.push_back({static_cast<ScalarOp>(op), a, b, c});
  s.consts = std::move(consts);
  return s;
}

// The run loop reads the count and changes views of the counted outputs.
void check_count(const Plan& plan, const Step& step) {
  const int32_t outputs = static_cast<int32_t>(step.out.size());
  const auto value_of = [&](int32_t output) { return plan.values.at(static_cast<size_t>(step.out[output])); };
  if (step.count < 0) {
    if (!step.counted.empty()) throw nb::value_error("expected a count for outputs with an upper bound");
    return;
  }
  if (step.count >= outputs || value_of(step.count).dtype != DType::I32 || value_of(step.count).rank != 0)
    throw nb::value_error("expected a count of type int32 without axes among the step's outputs");
  for (const int32_t o : step.counted)
    if (o < 0 || o >= outputs || o == step.count || value_of(o).rank < 1)
      throw nb::value_error("expected counted outputs with at least one axis");
  if (step.kernel && (step.kernel->aliases() || step.kernel->allocates()))
    throw nb::value_error("expected a kernel with a count to write memory that is reserved for it");
  if (step.frames >= 0) throw nb::value_error("a kernel with a count cannot run frame by frame");
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel");
  bind_records(m);
  nb::class_<Plan>(m, "Plan")
      .def(nb::init<>())
      .def("add_value",
           [](Plan& p, int dtype, int rank, int storage, int slot) {
             p.values.push_back({static_cast<DType>(dtype), rank, static_cast<Storage>(storage), slot});
           })
      .def(
          "add_step",
          [](Plan& p, KernelRef kernel, Ints in, Ints out, std::vector<std::tuple<int, int, int, int>> code,
             std::vector<double> consts, Ints params, std::vector<Ints> extents,
             std::vector<std::tuple<int, int, Ints>> checks, std::vector<std::pair<int, bool>> guards, int frames,
             std::vector<uint8_t> framed_in, bool ordered, Ints counted, int count) {
            if (in.size() > 64 || out.size() > kMaxStepOutputs)
              throw nb::value_error("a step takes at most 64 inputs, 64 outputs");
            Step s;
            s.kernel = std::move(kernel);
            s.in = std::move(in);
            s.out = std::move(out);
            s.scalars = scalar_code(code, std::move(consts));
            s.params = std::move(params);
            s.extents = std::move(extents);
            for (auto& [condition, message, values] : checks) s.checks.push_back({condition, message, values});
            for (auto& [value, wanted] : guards) s.guards.push_back({value, wanted});
            s.frames = frames;
            s.framed_in = std::move(framed_in);
            s.ordered = ordered;
            s.counted = std::move(counted);
            s.count = count;
            check_count(p, s);
            p.steps.push_back(std::move(s));
          },
          nb::arg("kernel").none(), nb::arg("inputs"), nb::arg("outputs"), nb::arg("code"), nb::arg("consts"),
          nb::arg("params"), nb::arg("extents"), nb::arg("checks"), nb::arg("guards"), nb::arg("frames"),
          nb::arg("framed"), nb::arg("ordered"), nb::arg("counted") = Ints{}, nb::arg("count") = -1)
      .def("add_segment",
           [](Plan& p, int kind, Ints steps, Ints opens) {
             p.segments.push_back({static_cast<SegmentKind>(kind), std::move(steps), std::move(opens)});
           })
      .def(
          "add_output",
          [](Plan& p, int value, bool fixed, bool device, std::vector<int64_t> shape,
             std::vector<std::tuple<int, int, int, int>> code, std::vector<double> consts, Ints extents, int count) {
            p.outputs.push_back({value, fixed, device, std::move(shape), scalar_code(code, std::move(consts)),
                                 std::move(extents), count});
          },
          nb::arg("value"), nb::arg("fixed"), nb::arg("device"), nb::arg("shape"), nb::arg("code"), nb::arg("consts"),
          nb::arg("extents"), nb::arg("count") = -1)
      .def("finish", [](Plan& p, int buffers, int readers) {
        p.buffers = buffers;
        p.readers = readers;
        p.finish();
      });
}

}  // namespace stoker
