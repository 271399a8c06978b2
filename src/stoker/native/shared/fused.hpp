// SPDX-License-Identifier: Apache-2.0
// Fused multiply-add of float32 for machines without the instruction.
#pragma once
#include <cstdint>
#include <cstring>

// Forces inlining into functions that are compiled once per instruction set: a function that is not inlined would keep
// the baseline instruction set.
#if defined(__CUDACC_RTC__)
#define STOKER_INLINED
#define STOKER_INLINED_LAMBDA
#else
#define STOKER_INLINED [[gnu::always_inline]]
#define STOKER_INLINED_LAMBDA __attribute__((always_inline))
#endif

namespace stoker {

// Return a * b + c, rounded once. The product is exact in double. The sum is rounded to odd in double, so that the
// second rounding can distinguish an inexact sum from an exact one (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums", 2008).
inline float fused_plain(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b), sum = product + static_cast<double>(c);
  const double back = sum - product, rest = (product - (sum - back)) + (static_cast<double>(c) - back);
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  if (rest == 0.0 || rest != rest || (bits & 1)) return static_cast<float>(sum);
  bits += (rest > 0) == (sum > 0) ? 1 : ~uint64_t{0};
  double odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return static_cast<float>(odd);
}

// Return a * b + c, rounded once. With kHardware the caller is compiled for a target that has the instruction, as every
// GPU has.
template <bool kHardware>
STOKER_INLINED inline float fused(float a, float b, float c) {
#if defined(__CUDACC_RTC__)
  return __fmaf_rn(a, b, c);
#else
  if constexpr (kHardware) return __builtin_fmaf(a, b, c);
  return fused_plain(a, b, c);
#endif
}

}  // namespace stoker
