// SPDX-License-Identifier: Apache-2.0
// log2 in float32 with the same bits on every machine: additions and multiplications in a fixed order, for one number
// or for the lanes of a vector. The error stays below 1 ulp; the double functions of shared/xmath.hpp would cost a
// spectrogram about as much as its transform.
#pragma once
#include <cstdint>

#include "shared/fused.hpp"

namespace stoker::xm {

// `Lanes` has the types F (float32 values) and I (int32 lanes) and the functions
//   bits(F) -> I, from_bits(I) -> F, to_float(I) -> F, where(condition, F, F) -> F.

// log2(scaled) - shift for positive normal numbers.
template <class Lanes>
STOKER_INLINED inline typename Lanes::F log2f_shifted(typename Lanes::F scaled, typename Lanes::F shift) {
  using F = typename Lanes::F;
  using I = typename Lanes::I;
  // scaled = m 2^e with m = 1 + f in [2/3, 4/3), so that nothing cancels where x is near 1.
  const I e = ((Lanes::bits(scaled) & 0x7FFFFFFF) - 0x3F2AAAAB) >> 23;
  const F f = Lanes::from_bits(Lanes::bits(scaled) - (e << 23)) - 1.0f;
  // log2(1 + f) = f log2(e) + f^2 P(f). The upper 12 bits of f times the upper 12 of log2(e), or times themselves, are
  // exact; the terms with the lower bits are small.
  const F high = Lanes::from_bits(Lanes::bits(f) & -4096), low = f - high;
  F p = f * 0.17545065f + -0.18805592f;
  p = p * f + 0.15451561f;
  p = p * f + -0.17521039f;
  p = p * f + 0.20643342f;
  p = p * f + -0.24070365f;
  p = p * f + 0.28853060f;
  p = p * f + -0.36066870f;
  p = p * f + 0.48089842f;
  p = p * f + -0.72134755f;
  const F head = high * 1.4423828125f;
  const F small = low * 1.4423828125f + (f * 0.00031222839f + (low * (f + high)) * p);
  const F rest = (high * high) * p + small;
  const F whole = Lanes::to_float(e) - shift;
  // The sum of the whole part and the head, with its rounding error: |whole| > |head|, or whole is 0.
  const F sum = whole + head;
  const F lost = head - (sum - whole);
  return sum + (lost + rest);
}

// A negative number gives NaN, zero gives minus infinity; NaN and infinity pass through.
template <class Lanes>
STOKER_INLINED inline typename Lanes::F log2f(typename Lanes::F x) {
  using F = typename Lanes::F;
  using I = typename Lanes::I;
  const I none = Lanes::bits(x) & 0;
  const F zero = Lanes::from_bits(none), infinity = Lanes::from_bits(none + 0x7F800000);
  const auto tiny = x < Lanes::from_bits(none + 0x00800000);  // below the smallest normal number
  const F scaled = Lanes::where(tiny, x * 8388608.0f, x);     // 2^23
  const F y = log2f_shifted<Lanes>(scaled, Lanes::where(tiny, zero + 23.0f, zero));
  const F special = Lanes::where(x < zero, infinity - infinity, -infinity);  // of a negative number, of zero
  return Lanes::where(x > zero, Lanes::where(x < infinity, y, x), Lanes::where(x == x, special, x));
}

// log2f of numbers that are at least the smallest normal number, infinity or NaN.
template <class Lanes>
STOKER_INLINED inline typename Lanes::F log2f_normal(typename Lanes::F x) {
  using F = typename Lanes::F;
  const auto none = Lanes::bits(x) & 0;
  const F infinity = Lanes::from_bits(none + 0x7F800000);
  return Lanes::where(x < infinity, log2f_shifted<Lanes>(x, Lanes::from_bits(none)), x);
}

}  // namespace stoker::xm
