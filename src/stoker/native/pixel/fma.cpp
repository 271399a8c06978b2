// SPDX-License-Identifier: Apache-2.0
// Elementary functions for AVX2 with FMA. The bits are those without FMA.
#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "pixel/kernels.hpp"
#include "shared/half.hpp"
#include "shared/xmath.hpp"

#include "base/target_begin_fma.hpp"

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 32
#define STOKER_VECTOR_FMA
#include "base/vectors.ipp"
#include "base/vectors_avx2.ipp"

#include "pixel/functions.ipp"

}  // namespace

void fill_fma(Kernels& k) { fill_double_functions(k); }

}  // namespace stoker::pixel

#include "base/target_end.hpp"
#endif
