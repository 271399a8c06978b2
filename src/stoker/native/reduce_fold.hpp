// SPDX-License-Identifier: Apache-2.0
// How many numbers become one, in an order that a CPU's vectors and a GPU's warps can both keep: plain C++ for both.
//
// Numbers are taken in chunks of kChunk. Number i of a chunk is added to lane i % kLanes; at the chunk's end the upper half of
// the lanes is added to the lower one until one is left. The chunks' results are taken as if they were one more chunk,
// of any length. Lanes begin with the operation's neutral element, so those that get no number change nothing.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "xmath.hpp"

namespace stoker::fold {

constexpr int kLanes = 32;
constexpr int64_t kChunk = 4096;

// The order is part of the Python side's contract (ops/reductions/_reduction.py).
enum class Reduction : uint8_t { Min, Max, Sum, Mean, MeanSquare, Rms, Variance, StdDev };

// What an integer is summed in, modulo 2^64, and a float.
template <class T>
using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// -0 is below +0, so that no order of the numbers decides.
template <class T>
inline bool below(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a == b) return (xm::detail::bits(static_cast<double>(a)) >> 63) > (xm::detail::bits(static_cast<double>(b)) >> 63);
  return a < b;
}

// One operation over numbers of type T: what a number counts as, and how two results become one.
template <Reduction kOp, class T>
struct Fold {
  static constexpr bool kExtreme = kOp == Reduction::Min || kOp == Reduction::Max;
  using Result = std::conditional_t<kExtreme, T, std::conditional_t<kOp == Reduction::Sum, Total<T>, double>>;

  static Result neutral() {
    using L = std::numeric_limits<T>;
    if constexpr (!kExtreme) return 0;
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(kOp == Reduction::Min ? xm::detail::infinity() : -xm::detail::infinity());
    else return kOp == Reduction::Min ? L::max() : L::min();
  }
  // `about`: the mean that deviations are from.
  static Result term(T x, double about) {
    if constexpr (kExtreme) {
      return x;
    } else if constexpr (kOp == Reduction::Sum) {
      return static_cast<Result>(x);
    } else {
      const double d = static_cast<double>(x);
      if constexpr (kOp == Reduction::Mean) return d;
      else if constexpr (kOp == Reduction::MeanSquare || kOp == Reduction::Rms) return d * d;
      else return (d - about) * (d - about);
    }
  }
  // A NaN stays.
  static Result join(Result a, Result b) {
    if constexpr (kOp == Reduction::Min) return below(b, a) || b != b ? b : a;
    else if constexpr (kOp == Reduction::Max) return below(a, b) || b != b ? b : a;
    else if constexpr (std::is_same_v<Result, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
  }
};

// What a sum over `count` numbers becomes.
template <Reduction kOp>
inline double averaged(double sum, int64_t count, double ddof) {
  const double n = static_cast<double>(count) - ddof, mean = n > 0 ? sum / n : 0.0;
  return kOp == Reduction::Rms || kOp == Reduction::StdDev ? std::sqrt(mean) : mean;
}

}  // namespace stoker::fold
