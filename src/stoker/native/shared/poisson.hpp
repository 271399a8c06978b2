// SPDX-License-Identifier: Apache-2.0
// Numbers from the Poisson distribution, a function of the mean and of an element's random bits. Plain C++ that compiles
// for the CPU and for a GPU, with the same bits.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared/element_random.hpp"
#include "shared/xmath.hpp"

namespace stoker::poisson {

constexpr double kSmall = 10;   // means below are searched from 0 on
constexpr int kMost = 1 << 10;  // steps of that search: a mean below 10 never reaches as many
constexpr int kAttempts = 64;   // each is rejected with a probability below 0.25

// Uniform numbers in (0, 1), one after the other. Each is of a stream of its own.
class Uniforms {
 public:
  Uniforms(uint32_t element, uint32_t key, uint32_t stream) : element_(element), key_(key), stream_(stream) {}
  double next() {
    const double word = static_cast<double>(element_random::word(element_, key_, stream_++));
    return xm::detail::mul(xm::detail::add(word, 0.5), 0x1p-32);
  }

 private:
  uint32_t element_, key_, stream_;
};

// log(k!) for k >= 0, by Stirling's series; small k by the product.
inline double log_factorial(double k) {
  using namespace xm::detail;
  double product = 1, x = add(k, 1);
  for (; x < 12; x = add(x, 1)) product = mul(product, x);
  const double inverse = div(1, x), square = mul(inverse, inverse);
  const double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680};
  const double series = mul(inverse, horner(square, c));
  const double sum = add(add(mul(sub(x, 0.5), xm::log(x)), -x), add(0.9189385332046727, series));
  return sub(sum, xm::log(product));
}

inline double by_search(double mean, Uniforms& draws) {
  using namespace xm::detail;
  const double u = draws.next();
  double p = xm::exp(-mean), sum = p;
  int k = 0;
  while (u > sum && k < kMost) {
    ++k;
    p = mul(p, div(mean, k));
    const double more = add(sum, p);
    if (more == sum) break;  // the rest is below the last place
    sum = more;
  }
  return k;
}

// W. Hoermann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
inline double by_rejection(double mean, Uniforms& draws) {
  using namespace xm::detail;
  const double b = add(0.931, mul(2.53, std::sqrt(mean))), a = add(-0.059, mul(0.02483, b));
  const double inverse_alpha = add(1.1239, div(1.1328, sub(b, 3.4))), limit = sub(0.9277, div(3.6224, sub(b, 2)));
  const double log_mean = xm::log(mean);
  for (int i = 0; i < kAttempts; ++i) {
    const double u = sub(draws.next(), 0.5), v = draws.next();
    const double us = sub(0.5, u < 0 ? -u : u);
    const double k = std::floor(add(add(mul(add(div(mul(2, a), us), b), u), mean), 0.43));
    if (us >= 0.07 && v <= limit) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = sub(add(xm::log(v), xm::log(inverse_alpha)), xm::log(add(div(a, mul(us, us)), b)));
    if (left <= sub(add(-mean, mul(k, log_mean)), log_factorial(k))) return k;
  }
  return std::floor(mean);
}

// A mean of 0 or below gives 0; NaN and infinity stay.
inline double draw(double mean, uint32_t element, uint32_t key, uint32_t stream) {
  if (mean <= 0) return 0;
  if (!(mean < 1e300)) return mean;
  Uniforms draws(element, key, stream);
  return mean < kSmall ? by_search(mean, draws) : by_rejection(mean, draws);
}

// Shot noise: a number of events, each of which counts `factor`. A factor of 0 leaves x as it is.
inline double shot(double x, double factor, uint32_t element, uint32_t key, uint32_t stream) {
  if (factor == 0) return x;
  return xm::detail::mul(draw(xm::detail::div(x, factor), element, key, stream), factor);
}

}  // namespace stoker::poisson
