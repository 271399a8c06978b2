// SPDX-License-Identifier: Apache-2.0
// Sums of floats for AVX-512.
#if defined(__x86_64__)
#include <cstddef>
#include <cstring>

#include "reduce/floats.hpp"
#include "shared/half.hpp"
#include "shared/reduce_fold.hpp"

#include "base/target_begin_avx512.hpp"

namespace stoker::floats {
namespace {

#define STOKER_VECTOR_BYTES 64
#include "base/vectors.ipp"

#include "reduce/floats.ipp"

}  // namespace

void fill_avx512(Kernels& k) { fill_kernels(k); }

}  // namespace stoker::floats

#include "base/target_end.hpp"
#endif
