// SPDX-License-Identifier: Apache-2.0
// Numbers of the distributions that `random.*` draws from, functions of uniform numbers. Plain C++ that compiles for the
// CPU and for a GPU, with the same bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "shared/half.hpp"
#include "shared/xmath.hpp"

namespace stoker::draws {

// The Python side (ops/random/) relies on the order of the enumerators.
enum class Distribution : uint8_t { Uniform, Normal, Coin, Values, Beta };

// Box-Muller method, for two uniform numbers in [0, 1); 1 - first keeps the logarithm's argument away from zero.
inline double normal(double first, double second) {
  const double radius = std::sqrt(-2.0 * xm::log(1.0 - first));
  return radius * xm::cos(6.283185307179586 * second);
}

// Return the index of one of `count` values; rounding could reach `count`.
inline int64_t index_below(double u, int64_t count) {
  const auto k = static_cast<int64_t>(u * static_cast<double>(count));
  return k < count ? k : count - 1;
}

// Return the next number below. `Word` is the unsigned integer of the number's size.
template <class Word, class Number>
inline Number next_below(Number x) {
  Word bits;
  std::memcpy(&bits, &x, sizeof bits);
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  if (x == 0) bits = kSign | 1;
  else bits = bits & kSign ? bits + 1 : bits - 1;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Return the largest half-precision number below `high`.
inline double below_in_half(double high) {
  const uint16_t h = half_from_double(high);
  if (static_cast<double>(float_from_half(h)) < high) return static_cast<double>(float_from_half(h));
  if ((h & 0x7fff) == 0) return static_cast<double>(float_from_half(0x8001));
  return static_cast<double>(float_from_half(static_cast<uint16_t>(h & 0x8000 ? h + 1 : h - 1)));
}

// Return the least of 0 to 2^53 that numbers of 53 bits reach if u = number / 2^53 is not below `probability`.
inline uint64_t coin_threshold(double probability) {
  if (!(probability > 0)) return 0;
  return probability >= 1 ? uint64_t{1} << 53 : static_cast<uint64_t>(std::ceil(probability * 0x1p53));
}

enum class Rounding : uint8_t { Half, Float, Double, Other };  // of the numbers, when they are stored

// Evenly distributed numbers. The upper end stays excluded even if rounding would reach it, except for integers.
class Range {
 public:
  Range(double low, double high, Rounding rounding)
      : low_(low), high_(high), width_(high - low), top_(high), rounding_(rounding) {
    if (!(high > low)) rounding_ = Rounding::Other;
    if (rounding_ == Rounding::Half) top_ = below_in_half(high);
    if (rounding_ == Rounding::Double) top_ = next_below<uint64_t>(high);
    const auto end = static_cast<float>(high);
    if (rounding_ == Rounding::Float) {
      const bool is_point = end == static_cast<float>(low);
      top_ = static_cast<double>(is_point ? end : next_below<uint32_t>(end));
    }
  }
  double at(double u) const {
    const double x = low_ + width_ * u;
    if (rounding_ == Rounding::Half) return top_ < x ? top_ : x;
    if (rounding_ == Rounding::Float) return static_cast<double>(static_cast<float>(x)) >= high_ ? top_ : x;
    return rounding_ == Rounding::Double && x >= high_ ? top_ : x;
  }
  // Return the same, for Rounding::Float, from comparisons of single precision: `end` is least_float().
  float at(double u, float end) const {
    const auto x = static_cast<float>(low_ + width_ * u);
    return x >= end ? static_cast<float>(top_) : x;
  }
  // Return the least number of single precision that is excluded; NaN if there is none.
  float least_float() const {
    if (rounding_ != Rounding::Float) return static_cast<float>(xm::detail::quiet_nan());
    const auto end = static_cast<float>(high_);
    return static_cast<double>(end) < high_ ? -next_below<uint32_t>(-end) : end;
  }

 private:
  double low_, high_, width_, top_;
  Rounding rounding_;
};

}  // namespace stoker::draws
