// SPDX-License-Identifier: Apache-2.0
// Selection between two compiled forms of a function: with the processor's fused multiply-add instructions on vectors
// of floats, and without (shared/fused.hpp).
//
// A function is a class with a static member `run<kHardware>` that is always inlined, so that it can be compiled in
// both forms.
#pragma once
#include "base/simd.hpp"
#include "shared/fused.hpp"

namespace stoker {

#if defined(__x86_64__)
#define STOKER_FMA __attribute__((target("avx2,fma")))
inline bool has_fma() { return has_wide() && __builtin_cpu_supports("fma"); }
#elif defined(__aarch64__)
#define STOKER_FMA  // part of the baseline
inline bool has_fma() { return has_wide(); }
#endif

template <class Step, class... Args>
void run_plain(Args... args) {
  Step::template run<false>(args...);
}

#if defined(STOKER_FMA)
template <class Step, class... Args>
STOKER_FMA void run_fma(Args... args) {
  Step::template run<true>(args...);
}
#endif

// The type of the pointer only serves to deduce the arguments.
template <class Step, class... Args>
auto form_like(void (*)(Args...)) -> void (*)(Args...) {
#if defined(STOKER_FMA)
  if (has_fma()) return run_fma<Step, Args...>;
#endif
  return run_plain<Step, Args...>;
}

// Return a pointer to the form that this processor runs.
template <class Step>
auto form_of() {
  return form_like<Step>(static_cast<decltype(&Step::template run<false>)>(nullptr));
}

// Return the form that this processor runs, of a step that is a template.
template <template <bool> class Step>
auto form_of(bool first) {
  return first ? form_of<Step<true>>() : form_of<Step<false>>();
}

}  // namespace stoker
