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

// Return the first k whose cumulative probability is at least u.
inline double search(double mean, double u) {
  using namespace xm::detail;
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

// Thresholds of the search for one mean: the search stops at the first k whose threshold is not below the uniform number's
// word. A sum of probabilities that no word exceeds has the largest threshold. Means below kSmall have it at 40 already,
// because fewer than one of 2^33 draws is above.
constexpr int kThresholds = 64;
inline void find_thresholds(double mean, uint32_t* thresholds) {
  using namespace xm::detail;
  double p = xm::exp(-mean), sum = p;
  for (int k = 0; k < kThresholds; ++k) {
    if (k > 0) {
      p = mul(p, div(mean, k));
      sum = add(sum, p);
    }
    // The uniform number (word + 0.5) / 2^32 is not above the sum. The subtraction is exact.
    const double most = sub(mul(sum, 0x1p32), 0.5);
    thresholds[k] = most < 0x1p32 ? static_cast<uint32_t>(most) : 0xFFFFFFFFu;
  }
}
// The number of thresholds below a word, by bisection.
inline double by_thresholds(const uint32_t* thresholds, uint32_t word) {
  int k = 0;
  for (int step = kThresholds / 2; step > 0; step /= 2)
    if (word > thresholds[k + step - 1]) k += step;
  return k;
}

// Numbers of the rejection method that depend on the mean alone.
struct Rejection {
  double mean, a, b, inverse_alpha, limit;
  explicit Rejection(double m) : mean(m) {
    using namespace xm::detail;
    b = add(0.931, mul(2.53, std::sqrt(m)));
    a = add(-0.059, mul(0.02483, b));
    inverse_alpha = add(1.1239, div(1.1328, sub(b, 3.4)));
    limit = sub(0.9277, div(3.6224, sub(b, 2)));
  }
};

// Logarithms of the rejection method. A table of them has the same functions.
struct Logarithms {
  const Rejection& r;
  double mean() const { return xm::log(r.mean); }
  double inverse_alpha() const { return xm::log(r.inverse_alpha); }
  double factorial(double k) const { return log_factorial(k); }
};

// W. Hoermann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
template <class Logs>
inline double by_rejection(const Rejection& r, const Logs& logs, Uniforms& draws) {
  using namespace xm::detail;
  for (int i = 0; i < kAttempts; ++i) {
    const double u = sub(draws.next(), 0.5), v = draws.next();
    const double us = sub(0.5, u < 0 ? -u : u);
    const double k = std::floor(add(add(mul(add(div(mul(2, r.a), us), r.b), u), r.mean), 0.43));
    if (us >= 0.07 && v <= r.limit) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = sub(add(xm::log(v), logs.inverse_alpha()), xm::log(add(div(r.a, mul(us, us)), r.b)));
    if (left <= sub(add(-r.mean, mul(k, logs.mean())), logs.factorial(k))) return k;
  }
  return std::floor(r.mean);
}

inline double by_rejection(double mean, Uniforms& draws) {
  const Rejection r(mean);
  return by_rejection(r, Logarithms{r}, draws);
}

// A mean of 0 or below gives 0; NaN and infinity stay.
inline double draw(double mean, uint32_t element, uint32_t key, uint32_t stream) {
  if (mean <= 0) return 0;
  if (!(mean < 1e300)) return mean;
  Uniforms draws(element, key, stream);
  return mean < kSmall ? search(mean, draws.next()) : by_rejection(mean, draws);
}

// Shot noise: a number of events, each of which counts `factor`. A factor of 0 leaves x as it is.
inline double shot(double x, double factor, uint32_t element, uint32_t key, uint32_t stream) {
  if (factor == 0) return x;
  return xm::detail::mul(draw(xm::detail::div(x, factor), element, key, stream), factor);
}

}  // namespace stoker::poisson
