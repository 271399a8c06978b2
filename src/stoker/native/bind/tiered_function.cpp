// SPDX-License-Identifier: Apache-2.0
// Binding of functions whose compilation Python begins when an interpreter has done enough of their work.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "gpu/tiered_function.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

// Calls `compile(tiered)` in Python. The planner owns the kernel, so the reference is dropped with the GIL held.
class PythonTiered : public gpu::TieredFunction {
 public:
  PythonTiered(std::shared_ptr<const gpu::Function> interpreter, int64_t limit, nb::object compile)
      : TieredFunction(std::move(interpreter), limit), compile_(std::move(compile)) {}

  void request() const override {
    const WithGil gil;
    try {
      compile_(nb::cast(std::const_pointer_cast<gpu::TieredFunction>(shared_from_this())));
    } catch (nb::python_error& error) { error.discard_as_unraisable("compilation of a kernel"); }
  }

 private:
  const nb::object compile_;
};

}  // namespace

void bind_tiered_function(nb::module_& gpu_module) {
  nb::class_<gpu::TieredFunction>(gpu_module, "TieredFunction")
      .def(nb::new_([](std::shared_ptr<gpu::Function> interpreter, int64_t limit, nb::object compile) {
             return std::shared_ptr<gpu::TieredFunction>(
                 std::make_shared<PythonTiered>(std::move(interpreter), limit, std::move(compile)));
           }),
           nb::arg("interpreter"), nb::arg("limit"), nb::arg("compile"))
      .def_prop_ro("is_compiled", [](const gpu::TieredFunction& f) { return f.compiled() != nullptr; })
      .def(
          "set_compiled",
          [](gpu::TieredFunction& f, std::shared_ptr<gpu::Function> compiled) { f.set_compiled(std::move(compiled)); },
          nb::arg("compiled"));
}

}  // namespace stoker
