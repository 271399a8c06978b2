// SPDX-License-Identifier: Apache-2.0
// Python bindings of the engine, in parts. Only the planner and the executor use them.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>

#include "bind/array_rows.hpp"
#include "bind/arrays.hpp"
#include "run/engine.hpp"

namespace stoker {

// Python's handle of a job: it keeps the engine, and with it all memory, alive.
struct JobBox {
  std::shared_ptr<Engine> engine;
  Job* job;
};

struct WorkBox {
  std::shared_ptr<Engine> engine;
  PythonWork work;
};

// Return an array, or a list of arrays if rows differ in shape.
nanobind::object take_output(JobBox& box, int index);
// Return row 0 of an output as an array of its own.
nanobind::object take_row(JobBox& box, size_t index);
void feed_scalar(const JobBox& b, int value, int64_t row, double x);
void feed_numbers(const JobBox& b, int value, int64_t row, const nanobind::tuple& numbers);
void feed_row(const JobBox& b, int value, int64_t row, const AnyArray& a);
void feed_rows(const JobBox& b, int value, const ArrayRows& rows);

void bind_plan(nanobind::module_& m);
void bind_jobs(nanobind::module_& m);
void bind_random(nanobind::module_& m);

}  // namespace stoker
