// SPDX-License-Identifier: Apache-2.0
// Mixed-radix FFT, compiled for the CPU and for GPUs: one order of operations, so one result.
//
// Every function is straight-line code over a complex type `C` with members `re` and `im`. On the CPU a member is a
// vector whose lanes are different frames; on a GPU it is a float of one thread. Lanes never meet, so neither the
// width of the vectors nor the threads change a bit. No product is fused with a sum. Twiddle factors come from tables
// (signal/tables.cpp), which are made in double.
#pragma once
#include <cstdint>

#include "shared/fused.hpp"

namespace stoker::fft {

template <class C>
STOKER_INLINED inline C plus(C a, C b) {
  return {a.re + b.re, a.im + b.im};
}
template <class C>
STOKER_INLINED inline C minus(C a, C b) {
  return {a.re - b.re, a.im - b.im};
}
template <class C>
STOKER_INLINED inline C times(C a, float re, float im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
template <class C>
STOKER_INLINED inline C times_minus_i(C a) {
  return {a.im, -a.re};
}

// ---- forward transforms of a few points, in place; point k of the result is x[place<R>(k)] ----

constexpr float kHalfRoot = 0.70710678118654752f;

template <class C>
STOKER_INLINED inline void two(C& a, C& b) {
  const C s = plus(a, b), d = minus(a, b);
  a = s;
  b = d;
}

template <class C>
STOKER_INLINED inline void four(C& a, C& b, C& c, C& d) {
  const C s = plus(a, c), t = minus(a, c), u = plus(b, d), v = minus(b, d);
  a = plus(s, u);
  c = minus(s, u);
  b = {t.re + v.im, t.im - v.re};
  d = {t.re - v.im, t.im + v.re};
}

// The eighth roots of unity: x exp(-i pi/4) and x exp(-3 i pi/4).
template <class C>
STOKER_INLINED inline C eighth(C x) {
  return {(x.re + x.im) * kHalfRoot, (x.im - x.re) * kHalfRoot};
}
template <class C>
STOKER_INLINED inline C three_eighths(C x) {
  return {(x.im - x.re) * kHalfRoot, (-x.re - x.im) * kHalfRoot};
}

template <class C>
STOKER_INLINED inline void butterfly(C (&x)[2]) {
  two(x[0], x[1]);
}

template <class C>
STOKER_INLINED inline void butterfly(C (&x)[3]) {
  constexpr float kSine = 0.86602540378443865f;
  const C s = plus(x[1], x[2]), d = minus(x[1], x[2]);
  const C m = {x[0].re - s.re * 0.5f, x[0].im - s.im * 0.5f};
  const C t = {d.re * kSine, d.im * kSine};
  x[0] = plus(x[0], s);
  x[1] = {m.re + t.im, m.im - t.re};
  x[2] = {m.re - t.im, m.im + t.re};
}

template <class C>
STOKER_INLINED inline void butterfly(C (&x)[4]) {
  four(x[0], x[1], x[2], x[3]);
}

template <class C>
STOKER_INLINED inline void butterfly(C (&x)[5]) {
  constexpr float kCos1 = 0.30901699437494742f, kCos2 = -0.80901699437494742f;
  constexpr float kSin1 = 0.95105651629515357f, kSin2 = 0.58778525229247313f;
  const C s1 = plus(x[1], x[4]), d1 = minus(x[1], x[4]), s2 = plus(x[2], x[3]), d2 = minus(x[2], x[3]);
  const C m1 = {x[0].re + (s1.re * kCos1 + s2.re * kCos2), x[0].im + (s1.im * kCos1 + s2.im * kCos2)};
  const C m2 = {x[0].re + (s1.re * kCos2 + s2.re * kCos1), x[0].im + (s1.im * kCos2 + s2.im * kCos1)};
  const C n1 = {d1.re * kSin1 + d2.re * kSin2, d1.im * kSin1 + d2.im * kSin2};
  const C n2 = {d1.re * kSin2 - d2.re * kSin1, d1.im * kSin2 - d2.im * kSin1};
  x[0] = plus(x[0], plus(s1, s2));
  x[1] = {m1.re + n1.im, m1.im - n1.re};
  x[4] = {m1.re - n1.im, m1.im + n1.re};
  x[2] = {m2.re + n2.im, m2.im - n2.re};
  x[3] = {m2.re - n2.im, m2.im + n2.re};
}

template <class C>
STOKER_INLINED inline void butterfly(C (&x)[8]) {
  four(x[0], x[2], x[4], x[6]);
  four(x[1], x[3], x[5], x[7]);
  x[3] = eighth(x[3]);
  x[5] = times_minus_i(x[5]);
  x[7] = three_eighths(x[7]);
  two(x[0], x[1]);
  two(x[2], x[3]);
  two(x[4], x[5]);
  two(x[6], x[7]);
}

// The 16 points are four transforms of four points each, factors, and four transforms of the points 4 j to 4 j + 3.
template <class C>
STOKER_INLINED inline void begin_sixteen(C (&x)[16]) {
  constexpr float kCos = 0.92387953251128674f, kSin = 0.38268343236508977f;  // of pi/8
  four(x[0], x[4], x[8], x[12]);
  four(x[1], x[5], x[9], x[13]);
  four(x[2], x[6], x[10], x[14]);
  four(x[3], x[7], x[11], x[15]);
  x[5] = times(x[5], kCos, -kSin);
  x[9] = eighth(x[9]);
  x[13] = times(x[13], kSin, -kCos);
  x[6] = eighth(x[6]);
  x[10] = times_minus_i(x[10]);
  x[14] = three_eighths(x[14]);
  x[7] = times(x[7], kSin, -kCos);
  x[11] = three_eighths(x[11]);
  x[15] = times(x[15], -kCos, kSin);
}
template <class C>
STOKER_INLINED inline void butterfly(C (&x)[16]) {
  begin_sixteen(x);
  four(x[0], x[1], x[2], x[3]);
  four(x[4], x[5], x[6], x[7]);
  four(x[8], x[9], x[10], x[11]);
  four(x[12], x[13], x[14], x[15]);
}

template <int R>
STOKER_INLINED constexpr int place(int k) {
  if (R == 16) return 4 * (k & 3) + (k >> 2);
  if (R == 8) return 2 * (k & 3) + (k >> 2);
  return k;
}

// From the points k and n - k of the transform of n complex numbers (even samples + i odd samples), return twice the
// points k and n - k of the transform of 2n real samples. `re`, `im`: exp(-i pi k / n).
template <class C>
STOKER_INLINED inline void real_pair(C z, C y, float re, float im, C& low, C& high) {
  const C even = {z.re + y.re, z.im - y.im}, odd = {z.im + y.im, y.re - z.re};
  const C t = times(odd, re, im);
  low = plus(even, t);
  high = {even.re - t.re, t.im - even.im};
}

// ---- plan of a transform: integers that both machines derive from the number of samples ----

constexpr int kMaxPasses = 24;
constexpr int64_t kMaxSamples = 1 << 20;

struct Plan {
  int32_t samples;  // of the real transform
  int32_t bins;     // of its result: samples / 2 + 1
  int32_t points;   // complex numbers: samples / 2, or `samples` if that is odd
  int32_t length;   // of the complex FFT: `points`, or more for Bluestein's algorithm
  int32_t passes;
  int32_t radix[kMaxPasses];
  // Offsets in the table, in floats. A factor is (re, im).
  int32_t twiddles[kMaxPasses];  // per pass: for p = 1.., for k = 1..radix - 1: exp(-2 pi i p k / n) of n points left
  int32_t pair;                  // even samples: exp(-i pi k / points) for k = 0..points / 2
  int32_t chirp;                 // Bluestein: exp(-i pi j^2 / points) for all points
  int32_t filter;                // Bluestein: the transform of the conjugate chirp / length, for all of `length`
  int32_t floats;                // of the table

  constexpr bool is_odd() const { return (samples & 1) != 0; }
  constexpr bool has_chirp() const { return length != points; }
};

constexpr int32_t without_factors(int32_t n) {  // other than 2, 3 and 5
  const int32_t factors[] = {2, 3, 5};
  for (const int32_t f : factors)
    while (n % f == 0) n /= f;
  return n;
}

// 1 <= samples <= kMaxSamples
constexpr Plan plan_of(int32_t samples) {
  Plan plan = {};
  plan.samples = samples;
  plan.bins = samples / 2 + 1;
  plan.points = samples & 1 ? samples : samples / 2;
  plan.length = plan.points;
  if (without_factors(plan.points) != 1) {
    plan.length = 1;
    while (plan.length < 2 * plan.points - 1) plan.length *= 2;
  }
  int32_t rest = plan.length, twos = 0;
  while (rest % 2 == 0) {
    rest /= 2;
    ++twos;
  }
  const auto add = [&plan](int32_t radix) { plan.radix[plan.passes++] = radix; };
  // Passes of 16 points are the cheapest per point, passes of 2 the most expensive.
  int32_t sixteens = twos / 4, left = twos % 4;
  const bool trade = left == 1 && sixteens > 0;  // 16 x 2 = 8 x 4
  for (int32_t i = trade ? 1 : 0; i < sixteens; ++i) add(16);
  if (trade || left == 3) add(8);
  if (trade || left == 2) add(4);
  if (!trade && left == 1) add(2);
  for (; rest % 5 == 0; rest /= 5) add(5);
  for (; rest % 3 == 0; rest /= 3) add(3);
  int32_t n = plan.length, at = 0;
  for (int32_t i = 0; i < plan.passes; ++i) {
    plan.twiddles[i] = at;
    n /= plan.radix[i];
    at += 2 * (n - 1) * (plan.radix[i] - 1);
  }
  plan.pair = at;
  if (!plan.is_odd()) at += 2 * (plan.points / 2 + 1);
  plan.chirp = at;
  if (plan.has_chirp()) at += 2 * plan.points;
  plan.filter = at;
  if (plan.has_chirp()) at += 2 * plan.length;
  plan.floats = at;
  return plan;
}

// Write the position of each point of the result after passes in place, plan.length of them. A pass leaves the points
// with the remainder k modulo its radix in the k-th part of a block.
inline void fill_positions(const Plan& plan, int32_t* positions) {
  positions[0] = 0;
  int32_t known = 1, n = plan.length;  // points below `known` differ in the digits of the passes so far
  for (int i = 0; i < plan.passes; ++i) {
    n /= plan.radix[i];
    for (int32_t k = 1; k < plan.radix[i]; ++k)
      for (int32_t f = 0; f < known; ++f) positions[k * known + f] = positions[f] + k * n;
    known *= plan.radix[i];
  }
}

}  // namespace stoker::fft
