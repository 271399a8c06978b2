// SPDX-License-Identifier: Apache-2.0
// Factors of transforms in double: the CPU makes tables of them (signal/tables.cpp), and a GPU makes those of rows with
// sizes of their own (device/own_factors.cuh).
#pragma once
#include <cstdint>

#include "shared/fft.hpp"
#include "shared/xmath.hpp"

namespace stoker::fft {

struct Factor {
  double re, im;
};

// exp(-i pi a / b)
inline Factor turn(int64_t a, int64_t b) {
  const double x = static_cast<double>(a % (2 * b)) / static_cast<double>(b);
  return {xm::cos_pi(x), -xm::sin_pi(x)};
}

// Factor of the table that floats 2i and 2i + 1 hold, for 2i < plan.filter.
inline Factor factor_of(const Plan& plan, int32_t i) {
  const int32_t at = 2 * i;
  if (at >= plan.chirp) {
    const int64_t j = (at - plan.chirp) / 2;
    return turn(j * j, plan.points);
  }
  if (at >= plan.pair) return turn((at - plan.pair) / 2, plan.points);
  int32_t pass = 0;
  int64_t n = plan.length;  // points that are left
  for (; pass + 1 < plan.passes && at >= plan.twiddles[pass + 1]; ++pass) n /= plan.radix[pass];
  const int32_t each = plan.radix[pass] - 1, number = (at - plan.twiddles[pass]) / 2;
  const int64_t p = number / each + 1, k = number % each + 1;
  return turn(2 * p * k, n);
}

// Element i of the periodic conjugate chirp over plan.length points, whose transform is the filter of Bluestein's
// algorithm.
inline Factor chirp_filter(const Plan& plan, int32_t i) {
  const int32_t j = i < plan.points ? i : plan.length - i;
  if (j >= plan.points) return {0.0, 0.0};
  const Factor x = turn(int64_t{j} * j, plan.points);
  return {x.re / plan.length, -x.im / plan.length};
}

// Pair i of a pass of radix 2 in double, over 2 * half points; `blocks` neighbouring pairs have one factor `w`
// (pair_factor). `re` and `im` are read, `to_re` and `to_im` written.
inline Factor pair_factor(int32_t i, int32_t half, int32_t blocks) {
  return turn(2 * (int64_t{i} - i % blocks), 2 * int64_t{half});
}
inline void double_pair(int32_t i, int32_t half, int32_t blocks, Factor w, const double* re, const double* im,
                        double* to_re, double* to_im) {
  const int32_t b = i + half, to = 2 * i - i % blocks;
  const double d_re = re[i] - re[b], d_im = im[i] - im[b];
  to_re[to] = re[i] + re[b];
  to_im[to] = im[i] + im[b];
  to_re[to + blocks] = d_re * w.re - d_im * w.im;
  to_im[to + blocks] = d_re * w.im + d_im * w.re;
}

}  // namespace stoker::fft
