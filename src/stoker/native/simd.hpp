// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels use: chosen once at run time, lowered by STOKER_SIMD or by a test.
#pragma once
#include <atomic>
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace stoker {

enum class Isa : int { Plain = 0, AVX2 = 1, AVX512 = 2, NEON = 3 };

#if defined(__x86_64__)
// `__builtin_cpu_supports` of Clang before version 17 does not know the name.
inline bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

inline Isa detect_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return Isa::AVX512;
  if (__builtin_cpu_supports("avx2") && has_f16c()) return Isa::AVX2;
  return Isa::Plain;
#elif defined(__aarch64__)
  return Isa::NEON;
#else
  return Isa::Plain;
#endif
}

inline Isa initial_isa() {
  const Isa best = detect_isa();
  const char* asked = std::getenv("STOKER_SIMD");
  if (!asked) return best;
  if (!std::strcmp(asked, "plain")) return Isa::Plain;
  if (!std::strcmp(asked, "avx2") && best != Isa::Plain && best != Isa::NEON) return Isa::AVX2;
  return best;
}

inline std::atomic<Isa>& isa_setting() {
  static std::atomic<Isa> value{initial_isa()};
  return value;
}
inline Isa isa() { return isa_setting().load(std::memory_order_relaxed); }

}  // namespace stoker
