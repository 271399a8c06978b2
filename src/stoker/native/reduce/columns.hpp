// SPDX-License-Identifier: Apache-2.0
// Exact statistics of the columns of a matrix of integers: sums, sums of squares, minima and maxima.
//
// Integers have no rounding, so the order of the additions does not matter, and every instruction set gives one result.
#pragma once
#include <cstdint>

#include "base/tensor.hpp"

namespace stoker::columns {

enum class Statistic : int { Sum, Squares, Min, Max };

constexpr int kMost = 4;  // columns

// Add `count` elements, of which element i belongs to column i % columns, to totals[columns].
using Add = void (*)(const uint8_t* p, int64_t count, int columns, int64_t* totals);

// Return the function for a statistic of integers, or null if there is none: sums take elements of at most 16 bits, sums
// of squares of 8 bits, extremes of 32 bits. A Bool counts as its byte.
Add find(Statistic statistic, DType dtype);

// Value of a total before the first element.
int64_t neutral(Statistic statistic);

constexpr int kStatistics = 4;
constexpr int kIntegers = 6;  // U8, I8, U16, I16, U32, I32

struct Kernels {
  Add add[kStatistics][kIntegers] = {};
};

void fill_plain(Kernels& k);
#if defined(__x86_64__)
void fill_avx2(Kernels& k);
void fill_avx512(Kernels& k);
#endif

}  // namespace stoker::columns
