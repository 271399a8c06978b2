// SPDX-License-Identifier: Apache-2.0
// exp, log, sin and cos with the same bits on every machine and on the accelerator.
//
// Every libm rounds as its vendor and release choose. Random draws, matrices and filter weights therefore use the
// functions of this file: additions, multiplications and divisions in IEEE double, in a fixed order. The error stays
// below 0.6 ulp because only the last addition rounds at full size; all values before it are kept as an unevaluated sum
// of two doubles.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define STOKER_XM inline __host__ __device__
#else
#define STOKER_XM inline
#endif

namespace stoker::xm {

namespace detail {

// The accelerator's compiler would fuse a*b+c; these intrinsics forbid it. The host is compiled with -ffp-contract=off.
#if defined(__CUDA_ARCH__)
STOKER_XM double add(double a, double b) { return __dadd_rn(a, b); }
STOKER_XM double sub(double a, double b) { return __dsub_rn(a, b); }
STOKER_XM double mul(double a, double b) { return __dmul_rn(a, b); }
STOKER_XM double div(double a, double b) { return __ddiv_rn(a, b); }
#else
STOKER_XM double add(double a, double b) { return a + b; }
STOKER_XM double sub(double a, double b) { return a - b; }
STOKER_XM double mul(double a, double b) { return a * b; }
STOKER_XM double div(double a, double b) { return a / b; }
#endif

STOKER_XM uint64_t bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
STOKER_XM double from_bits(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}
STOKER_XM double quiet_nan() { return from_bits(0x7FF8000000000000u); }
STOKER_XM double infinity() { return from_bits(0x7FF0000000000000u); }
STOKER_XM double pow2(int64_t k) { return from_bits(static_cast<uint64_t>(k + 1023) << 52); }  // -1022 <= k <= 1023

// The unevaluated sum hi + lo; |lo| is at most half an ulp of hi once normalised.
struct Pair {
  double hi, lo;
};

STOKER_XM Pair two_sum(double a, double b) {  // exact for any a, b
  const double s = add(a, b);
  const double bb = sub(s, a);
  return {s, add(sub(a, sub(s, bb)), sub(b, bb))};
}
STOKER_XM Pair fast_two_sum(double a, double b) {  // exact when |a| >= |b| or a == 0
  const double s = add(a, b);
  return {s, sub(b, sub(s, a))};
}
STOKER_XM Pair split(double a) {  // 26 + 26 bits
  const double t = mul(a, 134217729.0);
  const double hi = sub(t, sub(t, a));
  return {hi, sub(a, hi)};
}
STOKER_XM Pair two_mul(double a, double b) {  // exact while nothing over- or underflows
  const Pair x = split(a), y = split(b);
  const double p = mul(a, b);
  double e = sub(mul(x.hi, y.hi), p);
  e = add(e, mul(x.hi, y.lo));
  e = add(e, mul(x.lo, y.hi));
  return {p, add(e, mul(x.lo, y.lo))};
}

// c[0] + x*(c[1] + x*(c[2] + ...))
template <int N>
STOKER_XM double horner(double x, const double (&c)[N]) {
  double s = c[N - 1];
  for (int i = N - 2; i >= 0; --i) s = add(c[i], mul(x, s));
  return s;
}

// Adding 1.5 * 2^52 leaves no bits for a fraction, so the addition rounds half to even; the subtraction is exact.
STOKER_XM double nearest(double x) { return sub(add(x, 6755399441055744.0), 6755399441055744.0); }  // |x| < 2^51

}  // namespace detail

// Round half to even, for every finite x; NaN and infinities pass through.
STOKER_XM double round_even(double x) {
  const double limit = 4503599627370496.0;  // 2^52: from here on every double is an integer
  if (!(x > -limit && x < limit)) return x;
  const double magnitude = x < 0 ? -x : x;
  const double r = detail::sub(detail::add(magnitude, limit), limit);
  return x < 0 ? -r : r;
}

STOKER_XM double exp(double x) {
  using namespace detail;
  if (x != x) return x;
  if (x > 709.782712893384) return infinity();
  if (x < -745.1332191019412) return 0.0;
  // x = k ln 2 + r. The high part of ln 2 has 32 bits, so that k times it is exact.
  const double k = nearest(mul(x, 1.4426950408889634));
  const double head = sub(x, mul(k, 0x1.62e42fee00000p-1));
  const Pair r = two_sum(head, -mul(k, 0x1.a39ef35793c76p-33));
  // e^r = 1 + r + r^2/2 + r^3 (1/6 + r/24 + ...)
  const double c[] = {1.0 / 6,        1.0 / 24,        1.0 / 120,          1.0 / 720,
                      1.0 / 5040,     1.0 / 40320,     1.0 / 362880,       1.0 / 3628800,
                      1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0, 1.0 / 87178291200.0};
  const double square = mul(r.hi, r.hi);
  const double cubic = mul(mul(square, r.hi), horner(r.hi, c));
  const Pair s = fast_two_sum(1.0, r.hi);
  const Pair t = fast_two_sum(s.hi, mul(0.5, square));
  const double low = add(add(s.lo, t.lo), add(r.lo, mul(r.hi, r.lo)));
  const double y = add(t.hi, add(low, cubic));
  const int64_t e = static_cast<int64_t>(k);
  // Two factors: 2^k alone may exceed the exponent range on either side while the product does not.
  const int64_t half = e / 2;
  return mul(mul(y, pow2(half)), pow2(e - half));
}

STOKER_XM double log(double x) {
  using namespace detail;
  if (x != x) return x;
  if (x < 0) return quiet_nan();
  if (x == 0) return -infinity();
  if (x == infinity()) return x;
  int64_t k = 0;
  if (x < 2.2250738585072014e-308) {  // subnormal: bring it into the range where the exponent field is the exponent
    x = mul(x, 18014398509481984.0);
    k = -54;
  }
  uint64_t u = bits(x);
  // m in [sqrt(1/2), sqrt(2)), so that k = 0 whenever x is near 1 and nothing cancels.
  const uint64_t above = (u & 0x000FFFFFFFFFFFFFu) > 0x6A09E667F3BCCu ? 1 : 0;
  k += static_cast<int64_t>(u >> 52) - 1023 + static_cast<int64_t>(above);
  u = (u & 0x000FFFFFFFFFFFFFu) | ((1023 - above) << 52);
  const double m = from_bits(u);
  // log m = 2 atanh s with s = (m - 1) / (m + 1), the quotient carried to twice the precision.
  const double f = sub(m, 1.0);
  const double d = add(2.0, f);
  const double d_lo = sub(f, sub(d, 2.0));
  const double s = div(f, d);
  const Pair sd = two_mul(s, d);
  const double s_lo = div(sub(sub(sub(f, sd.hi), sd.lo), mul(s, d_lo)), d);
  const double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                      2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const double z = mul(s, s);
  const double series = mul(mul(z, s), horner(z, c));
  const double n = static_cast<double>(k);
  const Pair sum = fast_two_sum(mul(n, 0x1.62e42fee00000p-1), mul(2.0, s));
  const double low = add(mul(2.0, s_lo), mul(n, 0x1.a39ef35793c76p-33));
  return add(sum.hi, add(sum.lo, add(low, series)));
}

namespace detail {

// sin(r.hi + r.lo) for |r| <= pi/4. The cubic term is kept as a pair: rounding it to one double would cost a fifth of
// an ulp.
STOKER_XM double sin_kernel(Pair r) {
  const double c[] = {1.0 / 120,
                      -1.0 / 5040,
                      1.0 / 362880,
                      -1.0 / 39916800,
                      1.0 / 6227020800.0,
                      -1.0 / 1307674368000.0,
                      1.0 / 355687428096000.0};
  const Pair z = two_mul(r.hi, r.hi);
  const Pair w = two_mul(z.hi, r.hi);
  const double w_lo = add(w.lo, mul(z.lo, r.hi));
  const Pair sixth = two_mul(w.hi, -0x1.5555555555555p-3);
  const double sixth_lo = add(sixth.lo, add(mul(w_lo, -1.0 / 6), mul(w.hi, -0x1.5555555555555p-57)));
  const double fifth = mul(mul(w.hi, z.hi), horner(z.hi, c));
  const double shift = mul(r.lo, sub(1.0, mul(0.5, z.hi)));
  const Pair s = fast_two_sum(r.hi, sixth.hi);
  return add(s.hi, add(add(s.lo, fifth), add(sixth_lo, shift)));
}

STOKER_XM double cos_kernel(Pair r) {
  const double c[] = {1.0 / 24,          -1.0 / 720,           1.0 / 40320,           -1.0 / 3628800,
                      1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};
  const Pair z = two_mul(r.hi, r.hi);
  const double quartic = mul(mul(z.hi, z.hi), horner(z.hi, c));
  const Pair s = fast_two_sum(1.0, mul(-0.5, z.hi));
  const double shift = add(mul(0.5, z.lo), mul(r.hi, r.lo));
  return add(s.hi, add(add(s.lo, quartic), -shift));
}

// Upper half of a 128-bit product.
STOKER_XM uint64_t high_product(uint64_t a, uint64_t b) {
  const uint64_t low = 0xFFFFFFFFu, al = a & low, ah = a >> 32, bl = b & low, bh = b >> 32;
  const uint64_t middle = ah * bl + ((al * bl) >> 32), other = al * bh + (middle & low);
  return ah * bh + (middle >> 32) + (other >> 32);
}

// Return r and k, modulo 4, with x = k pi/2 + r, for 2^20 <= |x| < infinity.
//
// Source: M. H. Payne, R. N. Hanek, "Radian reduction for trigonometric functions" (1983). Only a window of the bits of
// 2/pi matters: those above it give multiples of 4, those below it are too small. A window of 192 bits leaves r a relative
// precision of 2^-78 for the double that is closest to a multiple of pi/2.
STOKER_XM Pair reduce_large(double x, int64_t& quadrant) {
  constexpr uint64_t kTwoOverPi[] = {
      0,  // the integer part, so that windows may begin there
      0xA2F9836E4E441529u,
      0xFC2757D1F534DDC0u,
      0xDB6295993C439041u,
      0xFE5163ABDEBBC561u,
      0xB7246E3A424DD2E0u,
      0x06492EEA09D1921Cu,
      0xFE1DEB1CB129A73Eu,
      0xE88235F52EBB4484u,
      0xE99C7026B45F7E41u,
      0x3991D639835339F4u,
      0x9C845F8BBDF9283Bu,
      0x1FF897FFDE05980Fu,
      0xEF2F118B5A0A6D1Fu,
      0x6D367ECF27CB09B7u,
      0x4F463F669E5FEA2Du,
      0x7527BAC7EBE5F17Bu,
      0x3D0739F78A5292EAu,
      0x6BFB5FB11F8D5D08u,
      0x56033046FC7B6BABu,
  };
  const uint64_t u = bits(x);
  const uint64_t m = (u & 0x000FFFFFFFFFFFFFu) | 0x0010000000000000u;  // |x| = m 2^e
  const int e = static_cast<int>(u >> 52 & 0x7FF) - 1075;
  const int first = e + 62, word = first >> 6, shift = first & 63;  // the window begins at the bit of 2^(2 - e)
  uint64_t window[3];
  for (int i = 0; i < 3; ++i)
    window[i] = shift ? kTwoOverPi[word + i] << shift | kTwoOverPi[word + i + 1] >> (64 - shift) : kTwoOverPi[word + i];
  // m times the window modulo 2^192: a fraction of 4 quadrants.
  const uint64_t p0 = m * window[2], carry = high_product(m, window[2]);
  const uint64_t low = m * window[1], p1 = low + carry;
  const uint64_t p2 = m * window[0] + high_product(m, window[1]) + (p1 < low ? 1 : 0);
  quadrant = static_cast<int64_t>(p2 >> 62);
  uint64_t f[3] = {p2 << 2 | p1 >> 62, p1 << 2 | p0 >> 62, p0 << 2};  // the fraction of a quadrant
  const bool above_half = f[0] >> 63;
  if (above_half) {  // count from the next quadrant down
    ++quadrant;
    f[2] = ~f[2] + 1;
    f[1] = ~f[1] + (f[2] == 0 ? 1 : 0);
    f[0] = ~f[0] + (f[1] == 0 && f[2] == 0 ? 1 : 0);
  }
  // Halves of the words are exact doubles, and each is smaller than one unit of those before it.
  const double h2 = mul(static_cast<double>(f[0] >> 32), 0x1p-32);
  const double l2 = mul(static_cast<double>(f[0] & 0xFFFFFFFFu), 0x1p-64);
  const double h1 = mul(static_cast<double>(f[1] >> 32), 0x1p-96);
  const double l1 = mul(static_cast<double>(f[1] & 0xFFFFFFFFu), 0x1p-128);
  const double h0 = mul(static_cast<double>(f[2] >> 32), 0x1p-160);
  const Pair a = fast_two_sum(l1, h0), b = fast_two_sum(h1, a.hi), c = fast_two_sum(l2, b.hi),
             d = fast_two_sum(h2, c.hi);
  const Pair t = fast_two_sum(d.hi, add(d.lo, add(c.lo, add(b.lo, a.lo))));
  const Pair r = two_mul(t.hi, 0x1.921fb54442d18p+0);
  const double rest = add(mul(t.hi, 0x1.1a62633145c07p-54), mul(t.lo, 0x1.921fb54442d18p+0));
  const Pair s = fast_two_sum(r.hi, add(r.lo, rest));
  const bool negative = u >> 63;
  if (negative) quadrant = -quadrant;
  return negative != above_half ? Pair{-s.hi, -s.lo} : s;
}

// Return r and k with x = k pi/2 + r; k may be off by a multiple of 4. For |x| < 2^20, pi/2 is split into three parts of 33
// bits, whose products with k (up to 20 bits) are exact, and a rest: 152 bits in all, so that r keeps its relative
// precision for x close to k pi/2.
STOKER_XM Pair reduce(double x, int64_t& quadrant) {
  if (!(x > -1048576.0 && x < 1048576.0)) return reduce_large(x, quadrant);
  const double k = nearest(mul(x, 0.6366197723675814));
  quadrant = static_cast<int64_t>(k);
  const double a = sub(x, mul(k, 0x1.921fb54400000p+0));
  const Pair b = two_sum(a, -mul(k, 0x1.0b4611a600000p-34));
  const Pair c = two_sum(b.hi, -mul(k, 0x1.3198a2e000000p-69));
  const double rest = sub(add(b.lo, c.lo), mul(k, 0x1.b839a252049c1p-104));
  return two_sum(c.hi, rest);
}

// sin(r + quadrant * pi/2)
STOKER_XM double sin_quadrant(Pair r, int64_t quadrant) {
  const double v = (quadrant & 1) ? cos_kernel(r) : sin_kernel(r);
  return (quadrant & 2) ? -v : v;
}

// pi * x = quadrant * pi/2 + r; exact but for the last product.
STOKER_XM Pair reduce_pi(double x, int64_t& quadrant) {
  const double twice = sub(x, mul(2.0, nearest(mul(0.5, x))));  // the period of both functions is 2
  const double k = nearest(mul(2.0, twice));
  quadrant = static_cast<int64_t>(k);
  const double f = sub(twice, mul(0.5, k));
  const Pair p = two_mul(f, 0x1.921fb54442d18p+1);
  return fast_two_sum(p.hi, add(p.lo, mul(f, 0x1.1a62633145c07p-53)));
}

}  // namespace detail

// Full precision for every number; NaN for infinities.
STOKER_XM double sin(double x) {
  if (!(detail::sub(x, x) == 0)) return detail::quiet_nan();
  if (x > -0x1p-27 && x < 0x1p-27) return x;  // also keeps the sign of -0.0
  int64_t quadrant;
  const detail::Pair r = detail::reduce(x, quadrant);
  return detail::sin_quadrant(r, quadrant);
}

STOKER_XM double cos(double x) {
  if (!(detail::sub(x, x) == 0)) return detail::quiet_nan();
  int64_t quadrant;
  const detail::Pair r = detail::reduce(x, quadrant);
  return detail::sin_quadrant(r, quadrant + 1);
}

// sin(pi x) and cos(pi x), with exact zeros and ones. |x| < 2^50.
STOKER_XM double sin_pi(double x) {
  if (!(x > -1125899906842624.0 && x < 1125899906842624.0)) return detail::quiet_nan();
  int64_t quadrant;
  const detail::Pair r = detail::reduce_pi(x, quadrant);
  return detail::sin_quadrant(r, quadrant);
}

STOKER_XM double cos_pi(double x) {
  if (!(x > -1125899906842624.0 && x < 1125899906842624.0)) return detail::quiet_nan();
  int64_t quadrant;
  const detail::Pair r = detail::reduce_pi(x, quadrant);
  return detail::sin_quadrant(r, quadrant + 1);
}

}  // namespace stoker::xm
