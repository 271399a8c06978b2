// SPDX-License-Identifier: Apache-2.0
// Access to the columns of boxes, and groups of boxes with one label.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/tensor.hpp"

namespace stoker::detect {

template <class T>
T element(const View& v, int64_t i, int64_t k = 0) {
  T x;
  std::memcpy(&x, v.data + i * v.stride[0] + (v.rank > 1 ? k * v.stride[1] : 0), sizeof x);
  return x;
}

// Smallest value v of type T such that `x > threshold`, compared in double, means `x >= v`; NaN if nothing is above.
template <class T>
T least_above(double threshold) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(threshold) || threshold == std::numeric_limits<double>::infinity()) return Limits::quiet_NaN();
  if (threshold >= static_cast<double>(Limits::max())) return Limits::infinity();
  if (threshold < static_cast<double>(Limits::lowest())) {
    return threshold == -std::numeric_limits<double>::infinity() ? Limits::lowest() : -Limits::infinity();
  }
  const auto t = static_cast<T>(threshold);
  return static_cast<double>(t) > threshold ? t : std::nextafter(t, Limits::infinity());
}

// Sequential allocation in one area of scratch memory.
class Pieces {
 public:
  explicit Pieces(uint8_t* at) : at_(at) {}
  template <class T>
  T* take(int64_t n) {
    auto* const piece = reinterpret_cast<T*>(at_);
    at_ += bytes_of<T>(n);
    return piece;
  }
  template <class T>
  static size_t bytes_of(int64_t n) {
    return (static_cast<size_t>(n) * sizeof(T) + 63) & ~size_t{63};
  }

 private:
  uint8_t* at_;
};

}  // namespace stoker::detect
