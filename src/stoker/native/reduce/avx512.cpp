// SPDX-License-Identifier: Apache-2.0
// Column statistics for AVX-512.
#if defined(__x86_64__)
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "reduce/columns.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx512.hpp"

namespace stoker::columns {
namespace {

#define STOKER_VECTOR_BYTES 64
#include "base/vectors.ipp"

#include "reduce/columns.ipp"

}  // namespace

void fill_avx512(Kernels& k) { fill_kernels(k); }

}  // namespace stoker::columns

#include "base/target_end.hpp"
#endif
