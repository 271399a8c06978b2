// SPDX-License-Identifier: Apache-2.0
// Steps that have two forms: with the processor's fused multiply-adds on eight floats at a time, and without (fused.hpp).
//
// A step is a class with a static function `run<kHardware>`, always inlined, so that it is compiled for either.
#pragma once
#include "fused.hpp"
#include "simd.hpp"

namespace stoker {

#if defined(__x86_64__)
#define STOKER_FMA __attribute__((target("avx2,fma")))

inline bool has_fma() { return (isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma"); }
#endif

template <class Step, class... Args>
void run_plain(Args... args) {
  Step::template run<false>(args...);
}

#if defined(__x86_64__)
template <class Step, class... Args>
STOKER_FMA void run_fma(Args... args) {
  Step::template run<true>(args...);
}
#endif

// The type's pointer only tells the arguments.
template <class Step, class... Args>
auto form_like(void (*)(Args...)) -> void (*)(Args...) {
#if defined(__x86_64__)
  if (has_fma()) return run_fma<Step, Args...>;
#endif
  return run_plain<Step, Args...>;
}

// The form that this processor runs, as a pointer to a function.
template <class Step>
auto form_of() {
  return form_like<Step>(static_cast<decltype(&Step::template run<false>)>(nullptr));
}

// Of a step that there are two of.
template <template <bool> class Step>
auto form_of(bool first) {
  return first ? form_of<Step<true>>() : form_of<Step<false>>();
}

}  // namespace stoker
