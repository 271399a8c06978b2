// SPDX-License-Identifier: Apache-2.0
// Binding of functions whose compilation Python begins when an interpreter has done enough of their work.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "gpu/tiered_function.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

// Calls `replace(tiered, limit)` in Python. The planner owns the kernel, so the reference is dropped with the GIL held.
class PythonTiered : public gpu::TieredFunction {
 public:
  PythonTiered(std::shared_ptr<const gpu::Function> interpreter, std::vector<int64_t> limits, nb::object replace)
      : TieredFunction(std::move(interpreter), std::move(limits)), replace_(std::move(replace)) {}

  void request(int64_t limit) const override {
    const WithGil gil;
    try {
      replace_(nb::cast(std::const_pointer_cast<gpu::TieredFunction>(shared_from_this())), limit);
    } catch (nb::python_error& error) { error.discard_as_unraisable("compilation of a kernel"); }
  }

 private:
  const nb::object replace_;
};

}  // namespace

void bind_tiered_function(nb::module_& gpu_module) {
  nb::class_<gpu::TieredFunction>(gpu_module, "TieredFunction")
      .def(nb::new_([](std::shared_ptr<gpu::Function> interpreter, std::vector<int64_t> limits, nb::object replace) {
             return std::shared_ptr<gpu::TieredFunction>(
                 std::make_shared<PythonTiered>(std::move(interpreter), std::move(limits), std::move(replace)));
           }),
           nb::arg("interpreter"), nb::arg("limits"), nb::arg("replace"))
      .def_prop_ro("is_compiled", [](const gpu::TieredFunction& f) { return f.compiled() != nullptr; })
      .def(
          "set_compiled",
          [](gpu::TieredFunction& f, std::shared_ptr<gpu::Function> compiled) { f.set_compiled(std::move(compiled)); },
          nb::arg("compiled"));
}

}  // namespace stoker
