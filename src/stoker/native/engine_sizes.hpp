// SPDX-License-Identifier: Apache-2.0
// How much memory rows ask for, and what is said where there is not so much.
#pragma once
#include <cmath>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "gpu_memory.hpp"
#include "tensor.hpp"

namespace stoker {

constexpr double kMaxBytes = 1ull << 40;  // a declared size above this is a mistake, not a request
constexpr const char* kTooLarge = "the output would take more than 2**40 bytes";

// NaN is no extent; what no memory can hold stays a number that can be multiplied without overflow as a double.
inline int64_t extent_of(double x) { return x > 0 ? static_cast<int64_t>(std::fmin(x, 0x1p62)) : 0; }

inline double bytes_of(DType dtype, const int64_t* shape, int64_t rank) {
  double bytes = static_cast<double>(size_of(dtype));
  for (int64_t i = 0; i < rank; ++i) bytes *= static_cast<double>(shape[i]);
  return bytes;
}

inline std::string no_memory(const std::bad_alloc& error) {
  const auto* limit = dynamic_cast<const gpu::LimitReached*>(&error);
  return limit ? limit->what() : "there is not enough memory";
}

template <class T>
void fit(std::vector<T>* v, size_t n) {
  if (n > v->capacity()) count_allocation(n * sizeof(T));
  v->resize(n);
}

}  // namespace stoker
