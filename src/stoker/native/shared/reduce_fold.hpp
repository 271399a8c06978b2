// SPDX-License-Identifier: Apache-2.0
// Reduction of many numbers to one, in an order that CPU vectors and GPU warps can both keep. Plain C++ for both.
//
// Numbers are taken in chunks of kChunk. Number i of a chunk is added to lane i % kLanes. At the end of the chunk the
// upper half of the lanes is added to the lower half until one lane is left. The results of the chunks are then reduced
// as if they were one more chunk, of any length. Lanes start with the operation's neutral element, so a lane without
// numbers changes nothing.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "shared/xmath.hpp"

namespace stoker::fold {

constexpr int kLanes = 32;
constexpr int64_t kChunk = 4096;

// The Python side relies on the order of the enumerators (ops/reductions/_reduction.py).
enum class Reduction : uint8_t { Min, Max, Sum, Mean, MeanSquare, Rms, Variance, StdDev };

// Type of a sum: integers are added modulo 2^64, floats in double.
template <class T>
using Total =
    std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// Minimum and maximum order -0 below +0, so that the result does not depend on the order of the numbers.
template <class T>
inline bool below(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (a == b)
      return (xm::detail::bits(static_cast<double>(a)) >> 63) > (xm::detail::bits(static_cast<double>(b)) >> 63);
  return a < b;
}

// One operation over numbers of type T: `term` maps a number to its contribution, `join` combines two results.
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
  // `about` is the mean that deviations are taken from.
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
  // A NaN in either operand is kept.
  static Result join(Result a, Result b) {
    if constexpr (kOp == Reduction::Min) return below(b, a) || b != b ? b : a;
    else if constexpr (kOp == Reduction::Max) return below(a, b) || b != b ? b : a;
    else if constexpr (std::is_same_v<Result, int64_t>)
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else return a + b;
  }
};

// Return the operation's result from the sum over `count` numbers. A sum that is divided by zero or less gives infinity, or
// NaN if it is zero, as in NumPy. The NaN is a constant, because a division has other bits on x86 than on a GPU.
template <Reduction kOp>
inline double averaged(double sum, int64_t count, double ddof) {
  const double n = static_cast<double>(count) - ddof;
  if (!(n > 0)) return sum > 0 ? xm::detail::infinity() : xm::detail::quiet_nan();
  return kOp == Reduction::Rms || kOp == Reduction::StdDev ? std::sqrt(sum / n) : sum / n;
}

// The same for a normalization, where a variance that too few numbers have is zero.
template <Reduction kOp>
inline double averaged_or_zero(double sum, int64_t count, double ddof) {
  return static_cast<double>(count) > ddof ? averaged<kOp>(sum, count, ddof) : 0.0;
}

}  // namespace stoker::fold
