// SPDX-License-Identifier: Apache-2.0
// A number of the normal distribution to within a known error, in a fifth of the operations of draws::normal, for results
// that are rounded to fewer bits: a GPU computes the exact number only where the error could change the rounded one.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared/philox.hpp"
#include "shared/xmath.hpp"

namespace stoker::draws {

// The largest difference from draws::normal; tests/cuda/normal_near.cpp measures it.
constexpr double kNearError = 0x1p-40;

struct Near {
  double value;
  bool known;  // to within kNearError; numbers of 4 in 10,000 blocks of words are not
};

namespace near {

#if defined(__CUDA_ARCH__)
inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
// Approximations from the upper half of x, whose relative errors are below 2^-18 (PTX ISA, rcp.approx.ftz.f64 and
// rsqrt.approx.ftz.f64).
inline double reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
inline double reciprocal_root(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
#else
inline double fused(double a, double b, double c) { return std::fma(a, b, c); }
inline double upper_half(double x) { return xm::detail::from_bits(xm::detail::bits(x) & 0xFFFFFFFF00000000u); }
inline double reciprocal(double x) { return upper_half(1 / upper_half(x)); }
inline double reciprocal_root(double x) { return upper_half(1 / std::sqrt(upper_half(x))); }
#endif

template <int N>
inline double horner(double x, const double (&c)[N]) {
  double s = c[N - 1];
  for (int i = N - 2; i >= 0; --i) s = fused(x, s, c[i]);
  return s;
}

// 1 + u for the uniform number u of two words (philox::uniform), without the last of its 53 bits.
inline double above_one(uint32_t first, uint32_t second) {
  return xm::detail::from_bits(0x3FF0000000000000u | uint64_t{first >> 6} << 26 | second >> 6);
}

}  // namespace near

// Box and Muller's method, as in draws::normal. The polynomials are minimax approximations (Remez's algorithm) of
// -4 atanh(s) / s, with errors of 2^-45 in -2 log(x), and of sin(2 pi b) / b, with 2^-43 in the sine.
inline Near normal_near(const philox::Block& words) {
  using namespace near;
  constexpr double kLog[] = {-0x1.fffffffffff0fp+1, -0x1.5555555673e15p+0, -0x1.9999962680919p-1,
                             -0x1.24943a2cda15bp-1, -0x1.c6204eb015c69p-2, -0x1.919b61d093f0bp-2};
  constexpr double kSine[] = {0x1.921fb54442bb6p+2, -0x1.4abbce624ae81p+5, 0x1.466bc66ed91e5p+6, -0x1.32d2c9b43b972p+6,
                              0x1.50770fc18be47p+5, -0x1.e29b960ba3e68p+3, 0x1.d53c5b3c6426fp+1};
  // x = 1 - first = 2^k m with m from sqrt(1/2) to sqrt(2), and log m = 2 atanh(s) with s = (m - 1) / (m + 1).
  const double x = 2.0 - above_one(words.w[0], words.w[1]);
  const uint64_t bits = xm::detail::bits(x);
  const auto k = static_cast<int32_t>(static_cast<uint32_t>(bits >> 32) - 0x3FE6A09Eu) >> 20;
  const double m = xm::detail::from_bits(bits - (static_cast<uint64_t>(static_cast<int64_t>(k)) << 52));
  const double divisor = m + 1.0;
  double y = reciprocal(divisor), e = fused(-divisor, y, 1.0);
  const double s = (m - 1.0) * fused(y, fused(e, e, e), y);
  const double square = fused(static_cast<double>(k), -0x1.62e42fefa39efp+0, s * horner(s * s, kLog));  // -2 log(x)
  // Its root, by an approximation and its relative error.
  y = reciprocal_root(square);
  const double root = square * y;
  e = fused(-root, y, 1.0);
  const double radius = fused(root * e, fused(0.375, e, 0.5), root);
  // cos(2 pi second) = sin(2 pi b) with b = |second - 1/2| - 1/4.
  const double b = std::fabs(above_one(words.w[2], words.w[3]) - 1.5) - 0.25;
  return {radius * (b * horner(b * b, kSine)), x >= 0x1p-12 && square >= 0x1p-12};
}

}  // namespace stoker::draws
