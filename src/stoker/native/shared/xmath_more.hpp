// SPDX-License-Identifier: Apache-2.0
// Elementary functions derived from the four of shared/xmath.hpp, with the same bits on every machine. They compute in
// double with errors of a few ulp; rounded to float they are within one ulp of float. The only libm function is the
// square root, which IEEE 754 defines to the bit.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared/xmath.hpp"

namespace stoker::xm {

namespace detail {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kHalfPi = 0x1.921fb54442d18p+0;
constexpr double kPi = 0x1.921fb54442d18p+1;

inline bool negative(double x) { return bits(x) >> 63; }
inline double with_sign(double magnitude, double sign) {
  return from_bits((bits(magnitude) & ~(1ull << 63)) | (bits(sign) & (1ull << 63)));
}
inline double absolute(double x) { return with_sign(x, 1.0); }
inline bool is_nan(double x) { return x != x; }
inline bool is_infinite(double x) { return x == infinity() || x == -infinity(); }

// log(1 + x); the second term corrects the rounding of 1 + x.
inline double log1p(double x) {
  const double u = add(1.0, x);
  if (is_infinite(u) || is_nan(u) || u <= 0) return log(u);
  const double lost = sub(x, sub(u, 1.0));
  return add(log(u), div(lost, u));
}

// atan for 0 <= x <= 1: atan(x) = atan(c) + atan((x - c) / (1 + c x)), c the nearest quarter, and a short series.
inline double atan_unit(double x) {
  constexpr double known[] = {0.0, 0.24497866312686414, 0.46364760900080611, 0.64350110879328437, 0.78539816339744831};
  const int k = static_cast<int>(add(mul(x, 4.0), 0.5));
  const double c = mul(0.25, k);
  const double t = div(sub(x, c), add(1.0, mul(c, x)));
  const double series[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17};
  const double z = mul(t, t);
  return add(known[k], add(t, mul(mul(z, t), horner(z, series))));
}

// sinh for |x| <= 0.5
inline double sinh_series(double x) {
  const double c[] = {1.0 / 6,        1.0 / 120,          1.0 / 5040,           1.0 / 362880,
                      1.0 / 39916800, 1.0 / 6227020800.0, 1.0 / 1307674368000.0};
  const double z = mul(x, x);
  return add(x, mul(mul(z, x), horner(z, c)));
}

// b^n by squaring; exact if the result and all partial products are.
inline double power(double b, unsigned n) {
  double r = 1;
  for (; n; n >>= 1) {
    if (n & 1) r = mul(r, b);
    if (n > 1) b = mul(b, b);
  }
  return r;
}

// 0: not an integer, 1: odd, 2: even
inline int parity(double y) {
  const double a = absolute(y);
  if (a >= 9007199254740992.0) return 2;
  const int64_t n = static_cast<int64_t>(a);
  if (static_cast<double>(n) != a) return 0;
  return n & 1 ? 1 : 2;
}

}  // namespace detail

// Exact at powers of two, since the exponent is added and not computed by a logarithm.
inline double log2(double x) {
  using namespace detail;
  if (!(x > 0) || is_infinite(x)) return log(x);
  int64_t k = 0;
  if (x < 2.2250738585072014e-308) {
    x = mul(x, 18014398509481984.0);
    k = -54;
  }
  uint64_t u = bits(x);
  k += static_cast<int64_t>(u >> 52) - 1023;
  u = (u & 0x000FFFFFFFFFFFFFull) | (1023ull << 52);
  double m = from_bits(u);
  if (m > 1.4142135623730951) {
    m = mul(m, 0.5);
    ++k;
  }
  return add(static_cast<double>(k), div(log(m), kLn2));
}

inline double log10(double x) { return detail::div(log(x), 0x1.26bb1bbb55516p+1); }

inline double tan(double x) {
  if (x > -0x1p-27 && x < 0x1p-27) return x;
  return detail::div(sin(x), cos(x));
}

inline double atan(double x) {
  using namespace detail;
  if (is_nan(x)) return x;
  const double a = absolute(x);
  if (a < 0x1p-27) return x;
  const double r = a <= 1 ? atan_unit(a) : sub(kHalfPi, atan_unit(div(1.0, a)));
  return with_sign(r, x);
}

// C's atan2, signed zeros and infinities included.
inline double atan2(double y, double x) {
  using namespace detail;
  if (is_nan(x) || is_nan(y)) return quiet_nan();
  const double ax = absolute(x), ay = absolute(y);
  double r;
  if (ay == 0) r = 0;
  else if (is_infinite(ax) && is_infinite(ay)) r = mul(0.5, kHalfPi);
  else if (ax == 0 || is_infinite(ay)) r = kHalfPi;
  else if (is_infinite(ax)) r = 0;
  else if (ay <= ax) r = div(ay, ax) < 0x1p-27 ? div(ay, ax) : atan_unit(div(ay, ax));
  else r = sub(kHalfPi, atan(div(ax, ay)));
  if (negative(x)) r = sub(kPi, r);
  return with_sign(r, y);
}

inline double asin(double x) {
  using namespace detail;
  if (!(x >= -1 && x <= 1)) return quiet_nan();
  if (absolute(x) < 0x1p-27) return x;
  return atan2(x, std::sqrt(mul(sub(1.0, x), add(1.0, x))));
}

inline double acos(double x) {
  using namespace detail;
  if (!(x >= -1 && x <= 1)) return quiet_nan();
  return mul(2.0, atan2(std::sqrt(sub(1.0, x)), std::sqrt(add(1.0, x))));
}

inline double sinh(double x) {
  using namespace detail;
  if (is_nan(x) || is_infinite(x)) return x;
  const double a = absolute(x);
  if (a <= 0.5) return sinh_series(x);
  if (a > 709) {  // e^a overflows before sinh does
    const double half = exp(mul(0.5, a));
    return with_sign(mul(mul(0.5, half), half), x);
  }
  const double e = exp(a);
  return with_sign(mul(0.5, sub(e, div(1.0, e))), x);
}

inline double cosh(double x) {
  using namespace detail;
  const double a = absolute(x);
  if (a > 709) {
    const double half = exp(mul(0.5, a));
    return mul(mul(0.5, half), half);
  }
  const double e = exp(a);
  return mul(0.5, add(e, div(1.0, e)));
}

inline double tanh(double x) {
  using namespace detail;
  const double a = absolute(x);
  if (is_nan(x)) return x;
  if (a <= 0.5) return div(sinh_series(x), cosh(x));
  if (a > 22) return with_sign(1.0, x);
  return with_sign(sub(1.0, div(2.0, add(exp(mul(2.0, a)), 1.0))), x);
}

inline double asinh(double x) {
  using namespace detail;
  if (is_nan(x) || is_infinite(x)) return x;
  const double a = absolute(x);
  if (a < 0x1p-27) return x;
  if (a > 0x1p28) return with_sign(add(log(a), kLn2), x);
  const double z = mul(a, a);
  return with_sign(log1p(add(a, div(z, add(1.0, std::sqrt(add(1.0, z)))))), x);
}

inline double acosh(double x) {
  using namespace detail;
  if (!(x >= 1)) return quiet_nan();
  if (x > 0x1p28) return add(log(x), kLn2);
  const double t = sub(x, 1.0);
  return log1p(add(t, std::sqrt(add(mul(2.0, t), mul(t, t)))));
}

inline double atanh(double x) {
  using namespace detail;
  const double a = absolute(x);
  if (!(a <= 1)) return quiet_nan();
  if (a < 0x1p-27) return x;
  if (a == 1) return with_sign(infinity(), x);
  return with_sign(mul(0.5, log1p(div(mul(2.0, a), sub(1.0, a)))), x);
}

inline double cbrt(double x) {
  using namespace detail;
  if (x == 0 || is_nan(x) || is_infinite(x)) return x;
  double a = absolute(x), scale = 1.0;
  if (a < 2.2250738585072014e-308) {
    a = mul(a, 0x1p+54);
    scale = 0x1p-18;
  }
  // A third of the exponent gives an estimate within a few percent; each Halley step triples the number of good bits.
  double r = from_bits(bits(a) / 3 + 0x2A9F7893A8E5B4E0ull);
  for (int i = 0; i < 4; ++i) {
    const double cube = mul(mul(r, r), r);
    r = mul(r, div(add(cube, mul(2.0, a)), add(mul(2.0, cube), a)));
  }
  return with_sign(mul(r, scale), x);
}

// C's pow. Small integer powers are computed as products, so that squares and cubes are exact where a product is.
inline double pow(double x, double y) {
  using namespace detail;
  if (y == 0 || x == 1) return 1;
  if (is_nan(x) || is_nan(y)) return quiet_nan();
  const double ax = absolute(x);
  const int whole = is_infinite(y) ? 2 : parity(y);
  if (is_infinite(y)) return ax == 1 ? 1 : (ax > 1) == (y > 0) ? infinity() : 0;
  const double sign = whole == 1 && negative(x) ? -1.0 : 1.0;
  if (ax == 0) return with_sign(y > 0 ? 0 : infinity(), sign);
  if (is_infinite(ax)) return with_sign(y > 0 ? infinity() : 0, sign);
  if (x < 0 && whole == 0) return quiet_nan();
  const double ay = absolute(y);
  if (whole && ay <= 32) {
    const double p = power(ax, static_cast<unsigned>(ay));
    return with_sign(y > 0 ? p : div(1.0, p), sign);
  }
  if (y == 0.5) return std::sqrt(ax);
  return with_sign(exp(mul(y, log(ax))), sign);
}

// C's fmod: exact, by long division in binary.
inline double fmod(double x, double y) {
  using namespace detail;
  if (is_nan(x) || is_nan(y) || is_infinite(x) || y == 0) return quiet_nan();
  const double a = absolute(x), b = absolute(y);
  if (a < b) return x;
  const auto unpack = [](double v, int64_t& e) -> uint64_t {
    const uint64_t u = bits(v), fraction = u & 0x000FFFFFFFFFFFFFull;
    e = static_cast<int64_t>(u >> 52);
    if (e != 0) return fraction | (1ull << 52);
    e = 1;  // subnormal
    return fraction;
  };
  int64_t ea, eb;
  uint64_t m = unpack(a, ea);
  const uint64_t d = unpack(b, eb);
  for (int64_t left = ea - eb; m != 0;) {
    m %= d;
    if (left == 0) break;
    const int64_t shift = left < 11 ? left : 11;  // m < 2^53: eleven bits of room
    m <<= shift;
    left -= shift;
  }
  if (m == 0) return with_sign(0.0, x);
  while (m < (1ull << 52) && eb > 1) {
    m <<= 1;
    --eb;
  }
  const uint64_t u = m < (1ull << 52) ? m : (m & 0x000FFFFFFFFFFFFFull) | (static_cast<uint64_t>(eb) << 52);
  return with_sign(from_bits(u), x);
}

}  // namespace stoker::xm
