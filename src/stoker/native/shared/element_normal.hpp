// SPDX-License-Identifier: Apache-2.0
// A number from the standard normal distribution for one element, from its two random words (shared/element_random.hpp),
// by the method of Box and Muller ("A note on the generation of random normal deviates", 1958): the first word gives the
// radius, the second one the angle.
//
// All of it is float32: additions, multiplications and a square root in a fixed order, so that every machine gets the
// same bits, for one element or for the lanes of a vector. The functions in double of shared/xmath.hpp took three
// quarters of the time of noise.gaussian.
#pragma once
#include <cstdint>

#include "shared/xmath_float.hpp"

namespace stoker::element_random {

// cos(2 pi turns / 2^24) of 0 <= turns < 2^24, with an error below 2e-7.
template <class Lanes>
STOKER_INLINED inline typename Lanes::F cosine_of_turns(typename Lanes::I turns) {
  using F = typename Lanes::F;
  using I = typename Lanes::I;
  // The angle is a multiple of a quarter turn plus x, at most an eighth of a turn. Both are exact.
  const I quarter = (turns + (1 << 21)) >> 22;
  const F x = Lanes::to_float(turns - (quarter << 22)) * 0x1p-24f, z = x * x;
  // Polynomials of the least largest error on this range.
  F sine = z * -75.402306f + 81.59256f;
  sine = sine * z + -41.341663f;
  sine = (sine * z + 6.2831855f) * x;
  F cosine = z * 66.11772f + -85.604f;
  cosine = cosine * z + 64.940254f;
  cosine = cosine * z + -19.73921f;
  cosine = cosine * z + 1.0f;
  const F size = Lanes::where((quarter & 1) != 0, sine, cosine);
  const I negative = 0 - (((quarter + 1) >> 1) & 1);  // all bits in the second and third quarters
  return Lanes::from_bits(Lanes::bits(size) ^ (negative & static_cast<int32_t>(0x80000000)));
}

// `Lanes` has what xm::log2f needs, and square_root(F) -> F. Only the upper 24 bits of the words count.
template <class Lanes>
STOKER_INLINED inline typename Lanes::F normal(typename Lanes::I first, typename Lanes::I second) {
  using F = typename Lanes::F;
  constexpr int32_t kWhole = 1 << 24;
  const F above_zero = Lanes::to_float(kWhole - ((first >> 8) & (kWhole - 1))) * 0x1p-24f;  // in (0, 1]
  const F zero = above_zero - above_zero;
  const F radius = Lanes::square_root((zero - xm::log2f_shifted<Lanes>(above_zero, zero)) * 1.3862944f);  // 2 ln 2
  return radius * cosine_of_turns<Lanes>((second >> 8) & (kWhole - 1));
}

}  // namespace stoker::element_random
