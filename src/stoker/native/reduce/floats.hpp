// SPDX-License-Identifier: Apache-2.0
// Sums of floats in double, over rows or columns of a matrix, in the order of shared/reduce_fold.hpp, and columns that are
// normalized with them.
#pragma once
#include <cstdint>

namespace stoker::floats {

enum class Term : int { Value, Square, Deviation };  // x, x * x, (x - about)^2

// Write for each column c the sum over i < count of the term of x[i * apart + c]. `about` has a number per column for
// deviations, and is null otherwise.
using Sum = void (*)(const float* x, int64_t count, int64_t apart, int64_t columns, const double* about, double* sums);

// (x - mean) * factor + shift, where factor = scale / sqrt(variance + epsilon), or 0 without a variance. Squares are divided
// by the number of elements minus ddof.
struct Normalization {
  double ddof;
  float scale, shift, epsilon;
};

// Normalize each column x[i * apart + c], i < count. y has the same layout and may be x.
using Normalize = void (*)(const float* x, int64_t count, int64_t apart, int64_t columns, const Normalization& n,
                           float* y);

struct Kernels {
  Sum sum[3];
  Normalize normalize;
};

// Return the functions for this processor.
const Kernels& kernels();
Sum find(Term term);

void fill_plain(Kernels& k);
#if defined(__x86_64__)
void fill_avx2(Kernels& k);
void fill_avx512(Kernels& k);
#endif

}  // namespace stoker::floats
