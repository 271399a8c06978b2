// SPDX-License-Identifier: Apache-2.0
// Meaning of the pixel programs' operations for one lane. Plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "shared/half.hpp"
#include "shared/xmath_more.hpp"

namespace stoker::pixel::scalar {

inline double square_root(double x) { return std::sqrt(x); }
inline double inverse_root(double x) { return xm::detail::div(1.0, std::sqrt(x)); }
inline double round_down(double x) { return std::floor(x); }
inline double round_up(double x) { return std::ceil(x); }
inline double truncate(double x) { return std::trunc(x); }
// Not std::rint, whose result depends on the thread's rounding mode.
inline double round_nearest(double x) { return xm::detail::with_sign(xm::round_even(x), x); }

// Integer division: division by zero gives 0 and sets `fault`; MIN / -1 wraps.
template <class T, bool Remainder>
inline T integer_divide(T a, T b, bool& fault) {
  fault |= b == 0;
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return Remainder ? 0 : static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return Remainder ? a % b : a / b;
}

template <class T>
inline T integer_power(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>)
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  U r = 1, base = static_cast<U>(a);
  for (U n = static_cast<U>(b); n; n >>= 1, base *= base)
    if (n & 1) r *= base;
  return static_cast<T>(r);
}

// One more than the largest value of an integer type, as a double. It is a power of two, so the double is exact.
template <class T>
constexpr double limit() {
  return 2.0 * static_cast<double>(T(1) << (std::numeric_limits<T>::digits - 1));
}

// Convert float to integer with saturation; NaN gives 0. `x` is integral, or the conversion truncates it.
template <class To>
inline To saturate(double x) {
  if (x != x) return 0;
  if (x >= limit<To>()) return std::numeric_limits<To>::max();
  if (x <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

// Cvt: convert a register's value to another register type.
template <class To, class From>
inline To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return saturate<To>(static_cast<double>(x));
  else return static_cast<To>(x);
}

// Cast: saturate the value to the range of `Memory`.
template <class Memory, class From>
inline Memory in_range(From x) {
  if constexpr (std::is_same_v<Memory, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<Memory>) {
    return static_cast<Memory>(x);
  } else if constexpr (std::is_floating_point_v<From>) {
    return saturate<Memory>(xm::round_even(static_cast<double>(x)));
  } else {
    using L = std::numeric_limits<Memory>;
    if (std::cmp_less(x, L::min())) return L::min();
    if (std::cmp_greater(x, L::max())) return L::max();
    return static_cast<Memory>(x);
  }
}

// Cast to F16: round to half precision and keep the result in a float.
template <class From>
inline float in_half(From x) {
  return float_from_half(half_from_double(static_cast<double>(x)));
}

// Cast to BF16: round to bfloat16 and keep the result in a float.
template <class From>
inline float in_bfloat(From x) {
  return float_from_bfloat(bfloat_from_double(static_cast<double>(x)));
}

// Wrap: reduce modulo 2^bits of `Memory`; bool keeps the last bit.
template <class Memory, class From>
inline Memory wrapped(From x) {
  if constexpr (std::is_same_v<Memory, bool>) return x & 1;
  else return static_cast<Memory>(x);
}

}  // namespace stoker::pixel::scalar
