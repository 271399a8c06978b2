// SPDX-License-Identifier: Apache-2.0
// What the operations of pixel programs mean for one lane: plain C++ that compiles for the CPU and for a GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "half.hpp"
#include "xmath_more.hpp"

namespace stoker::pixel::scalar {

inline double square_root(double x) { return std::sqrt(x); }
inline double inverse_root(double x) { return xm::detail::div(1.0, std::sqrt(x)); }
inline double round_down(double x) { return std::floor(x); }
inline double round_up(double x) { return std::ceil(x); }
inline double truncate(double x) { return std::trunc(x); }
// rint would depend on the thread's rounding mode.
inline double round_nearest(double x) { return xm::detail::with_sign(xm::round_even(x), x); }

// Integer division: zero gives 0 and a fault; MIN / -1 wraps.
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

// One past the largest value of an integer type, as a double: a power of two, hence exact.
template <class T>
constexpr double limit() {
  return 2.0 * static_cast<double>(T(1) << (std::numeric_limits<T>::digits - 1));
}

// Float to integer, saturating; NaN gives 0. x is integral already or to be truncated.
template <class To>
inline To saturate(double x) {
  if (x != x) return 0;
  if (x >= limit<To>()) return std::numeric_limits<To>::max();
  if (x <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return static_cast<To>(x);
}

// A register's value from another register type: Cvt.
template <class To, class From>
inline To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return saturate<To>(static_cast<double>(x));
  else return static_cast<To>(x);
}

// The value in Memory's range: Cast.
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

// Rounded to half precision, kept in a float: Cast to F16.
template <class From>
inline float in_half(From x) {
  return float_from_half(half_from_double(static_cast<double>(x)));
}

// The same for BF16.
template <class From>
inline float in_bfloat(From x) {
  return float_from_bfloat(bfloat_from_double(static_cast<double>(x)));
}

// Modulo 2^bits of Memory; bool keeps the last bit: Wrap.
template <class Memory, class From>
inline Memory wrapped(From x) {
  if constexpr (std::is_same_v<Memory, bool>) return x & 1;
  else return static_cast<Memory>(x);
}

}  // namespace stoker::pixel::scalar
