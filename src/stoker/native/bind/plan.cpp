// SPDX-License-Identifier: Apache-2.0
// Bindings of plans for the planner.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <limits>
#include <string>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "bind/containers.hpp"
#include "bind/manifest.hpp"
#include "bind/records.hpp"
#include "plan/check.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using Ints = std::vector<int32_t>;
using KernelRef = std::shared_ptr<Kernel>;

// Enumerators are bytes; the check of the plan refuses those that do not exist.
template <class Enum>
Enum as(int number, const char* what) {
  if (number < 0 || number > std::numeric_limits<uint8_t>::max())
    throw InvalidPlan("expected " + std::string(what) + ", got " + std::to_string(number));
  return static_cast<Enum>(number);
}

// Return a plan that may still change.
Plan& open_plan(Plan& plan) {
  if (plan.finished) throw InvalidPlan("expected a plan that is not finished");
  return plan;
}

ScalarCode scalar_code(const std::vector<std::tuple<int, int, int, int>>& code, std::vector<double> consts) {
  ScalarCode s;
  for (const auto& [op, a, b, c] : code) s.code.push_back({as<ScalarOp>(op, "an operation"), a, b, c});
  s.consts = std::move(consts);
  return s;
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel");
  bind_records(m);
  bind_containers(m);
  bind_manifest(m);
  nb::class_<Plan>(m, "Plan")
      .def(nb::init<>())
      .def(
          "add_value",
          [](Plan& p, int dtype, int rank, int storage, int slot) {
            open_plan(p).values.push_back(
                {as<DType>(dtype, "an element type"), rank, as<Storage>(storage, "a kind of memory"), slot});
          },
          nb::lock_self())
      .def(
          "add_step",
          [](Plan& plan, KernelRef kernel, Ints in, Ints out, std::vector<std::tuple<int, int, int, int>> code,
             std::vector<double> consts, Ints params, std::vector<Ints> extents,
             std::vector<std::tuple<int, int, Ints>> checks, std::vector<std::pair<int, bool>> guards, int frames,
             std::vector<uint8_t> framed_in, bool ordered, Ints counted, int count) {
            Plan& p = open_plan(plan);
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
            p.steps.push_back(std::move(s));
          },
          nb::arg("kernel").none(), nb::arg("inputs"), nb::arg("outputs"), nb::arg("code"), nb::arg("consts"),
          nb::arg("params"), nb::arg("extents"), nb::arg("checks"), nb::arg("guards"), nb::arg("frames"),
          nb::arg("framed"), nb::arg("ordered"), nb::arg("counted") = Ints{}, nb::arg("count") = -1, nb::lock_self())
      .def(
          "add_segment",
          [](Plan& p, int kind, Ints steps, Ints opens) {
            open_plan(p).segments.push_back(
                {as<SegmentKind>(kind, "a kind of segment"), std::move(steps), std::move(opens)});
          },
          nb::lock_self())
      .def(
          "add_output",
          [](Plan& p, int value, bool fixed, bool device, std::vector<int64_t> shape,
             std::vector<std::tuple<int, int, int, int>> code, std::vector<double> consts, Ints extents, int count,
             int root) {
            open_plan(p).outputs.push_back({value, fixed, device, std::move(shape),
                                            scalar_code(code, std::move(consts)), std::move(extents), count, root});
          },
          nb::arg("value"), nb::arg("fixed"), nb::arg("device"), nb::arg("shape"), nb::arg("code"), nb::arg("consts"),
          nb::arg("extents"), nb::arg("count") = -1, nb::arg("root") = -1, nb::lock_self())
      .def(
          "finish",
          [](Plan& p, int buffers, int readers) {
            open_plan(p).buffers = buffers;
            p.readers = readers;
            p.finish();
          },
          nb::lock_self());
}

}  // namespace stoker
