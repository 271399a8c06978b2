// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "base/simd.hpp"

namespace nb = nanobind;

namespace stoker {
void bind_engine(nb::module_& m);
}
void bind_detect(nb::module_& m);
void bind_jpeg(nb::module_& m);
void bind_pixel(nb::module_& m);
void bind_raster(nb::module_& m);
void bind_recipe(nb::module_& m);
void bind_resample(nb::module_& m);
void bind_video(nb::module_& m);

namespace {

// Return the instruction sets that this machine can use, narrower ones first.
std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const stoker::Isa isa : stoker::kIsas)
    if (stoker::can_use(isa)) names.emplace_back(stoker::isa_name(isa));
  return names;
}

// Refuse an instruction set that the machine lacks: it would crash later.
void set_isa(const std::string& name) {
  std::string usable;
  for (const stoker::Isa isa : stoker::kIsas) {
    if (!stoker::can_use(isa)) continue;
    if (stoker::isa_name(isa) == name) {
      stoker::isa_setting() = isa;
      return;
    }
    usable += (usable.empty() ? "" : ", ") + std::string(stoker::isa_name(isa));
  }
  throw nb::value_error(("expected an instruction set of this machine (" + usable + "), got '" + name + "'").c_str());
}

// Refuse an unknown name in STOKER_SIMD, which would silently limit nothing.
void check_setting() {
  const char* asked = std::getenv("STOKER_SIMD");
  if (!asked || !*asked) return;
  for (const stoker::Isa isa : stoker::kIsas)
    if (!std::strcmp(asked, stoker::isa_name(isa))) return;
  throw nb::value_error(
      ("STOKER_SIMD: expected plain, avx2, avx512 or neon, got '" + std::string(asked) + "'").c_str());
}

}  // namespace

NB_MODULE(_native, m) {
  check_setting();
  // Reference cycles between plans, engines and Python objects only exist through the executor, which closes them.
  nb::set_leak_warnings(false);
  m.def("get_isa", [] { return stoker::isa_name(stoker::isa()); });
  m.def("best_isa", [] { return stoker::isa_name(stoker::detect_isa()); });
  m.def("instruction_sets", &instruction_sets);
  m.def("set_isa", &set_isa);
  m.attr("compiler") = __VERSION__;
  m.attr("sanitized") = STOKER_GUARDED != 0;  // built with AddressSanitizer
  stoker::bind_engine(m);
  bind_detect(m);
  bind_jpeg(m);
  bind_pixel(m);
  bind_raster(m);
  bind_recipe(m);
  bind_resample(m);
  bind_video(m);
}
