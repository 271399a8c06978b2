// SPDX-License-Identifier: Apache-2.0
// Selection of the instruction set for kernels: once at run time, lowered by STOKER_SIMD or by a test.
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
// `__builtin_cpu_supports` does not know the name in Clang before version 17.
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

constexpr Isa kIsas[] = {Isa::Plain, Isa::AVX2, Isa::AVX512, Isa::NEON};

constexpr const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::AVX2: return "avx2";
    case Isa::AVX512: return "avx512";
    case Isa::NEON: return "neon";
    default: return "plain";
  }
}

// Whether this machine can run code for `isa`. AVX-512 includes AVX2.
inline bool can_use(Isa isa) {
  const Isa best = detect_isa();
  return isa == Isa::Plain || isa == best || (isa == Isa::AVX2 && best == Isa::AVX512);
}

// STOKER_SIMD is an upper bound: if it names an instruction set that this machine lacks, the best available one is
// used.
inline Isa initial_isa() {
  const char* asked = std::getenv("STOKER_SIMD");
  for (const Isa isa : kIsas)
    if (asked && !std::strcmp(asked, isa_name(isa)) && can_use(isa)) return isa;
  return detect_isa();
}

inline std::atomic<Isa>& isa_setting() {
  static std::atomic<Isa> value{initial_isa()};
  return value;
}
inline Isa isa() { return isa_setting().load(std::memory_order_relaxed); }

// Marks functions compiled for the vectors that every SIMD machine has: AVX2 (also on machines with AVX-512), or NEON,
// which is part of the Arm baseline. Call them only if has_wide() is true.
#if defined(__x86_64__)
#define STOKER_WIDE __attribute__((target("avx2")))
#else
#define STOKER_WIDE
#endif
inline bool has_wide() { return isa() != Isa::Plain; }

}  // namespace stoker
