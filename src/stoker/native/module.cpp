// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "simd.hpp"

namespace nb = nanobind;

namespace stoker {
void bind_engine(nb::module_& m);
}
void bind_jpeg(nb::module_& m);
void bind_pixel(nb::module_& m);
void bind_recipe(nb::module_& m);
void bind_resample(nb::module_& m);

namespace {

std::string isa_name(stoker::Isa isa) {
  switch (isa) {
    case stoker::Isa::AVX2: return "avx2";
    case stoker::Isa::AVX512: return "avx512";
    case stoker::Isa::NEON: return "neon";
    default: return "plain";
  }
}

// Only what the machine can do: asking for more is an error, not a crash later.
void set_isa(const std::string& name) {
  using stoker::Isa;
  const Isa best = stoker::detect_isa();
  for (Isa isa : {Isa::Plain, Isa::AVX2, Isa::AVX512, Isa::NEON}) {
    if (isa_name(isa) != name) continue;
    const bool x86 = best == Isa::AVX2 || best == Isa::AVX512;
    if (isa != Isa::Plain && isa != best && !(x86 && isa == Isa::AVX2)) break;
    stoker::isa_setting() = isa;
    return;
  }
  throw nb::value_error(("expected an instruction set of this machine (plain to " + isa_name(best) + "), got '" + name +
                         "'").c_str());
}

// The setting bounds what is used; a word that is none would bound nothing in silence.
void check_setting() {
  const char* asked = std::getenv("STOKER_SIMD");
  if (!asked || !*asked) return;
  for (const char* known : {"plain", "avx2", "avx512", "neon"})
    if (!std::strcmp(asked, known)) return;
  throw nb::value_error(("STOKER_SIMD: expected plain, avx2, avx512 or neon, got '" + std::string(asked) + "'").c_str());
}

}  // namespace

NB_MODULE(_native, m) {
  check_setting();
  // Plans and engines hold each other's Python objects only through the executor, which closes them.
  nb::set_leak_warnings(false);
  m.def("get_isa", [] { return isa_name(stoker::isa()); });
  m.def("best_isa", [] { return isa_name(stoker::detect_isa()); });
  m.def("set_isa", &set_isa);
  m.attr("compiler") = __VERSION__;
  stoker::bind_engine(m);
  bind_jpeg(m);
  bind_pixel(m);
  bind_recipe(m);
  bind_resample(m);
}
