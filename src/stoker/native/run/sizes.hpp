// SPDX-License-Identifier: Apache-2.0
// Sizes of a row's memory, and the error messages if there is not enough.
#pragma once
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "base/whole.hpp"
#include "gpu/memory.hpp"
#include "run/job.hpp"

namespace stoker {

constexpr double kMaxBytes = 1ull << 40;  // a larger declared size is a mistake and not a request
constexpr const char* kTooLarge = "the output would take more than 2**40 bytes";

// In place of a count until the kernel has written one.
constexpr int32_t kNoCount = -1;

// NaN becomes 0. Extents that no memory can hold stay numbers that can be multiplied as doubles without overflow.
inline int64_t extent_of(double x) { return saturated<int64_t>(x, 0, int64_t{1} << 62); }

inline double bytes_of(DType dtype, const int64_t* shape, int64_t rank) {
  double bytes = static_cast<double>(size_of(dtype));
  for (int64_t i = 0; i < rank; ++i) bytes *= static_cast<double>(shape[i]);
  return bytes;
}

// A limit is the pipeline's own; otherwise the system has no memory.
inline int32_t code_of(const std::bad_alloc& error) {
  return dynamic_cast<const gpu::LimitReached*>(&error) ? kFatal : kNoMemory;
}

// Return whether a tensor is of a size that may be meant. A tensor without elements has extents that can be multiplied
// all the same.
inline bool is_plausible(DType dtype, const int64_t* shape, int64_t rank) {
  double all = static_cast<double>(size_of(dtype));
  for (int64_t i = 0; i < rank; ++i) all *= static_cast<double>(shape[i] > 1 ? shape[i] : 1);
  return all <= 0x1p60 && bytes_of(dtype, shape, rank) <= kMaxBytes;
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
