// SPDX-License-Identifier: Apache-2.0
// Order statistics of windows for AVX2.
#if defined(__x86_64__)
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "filter/order.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::order {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "filter/order.ipp"

}  // namespace

void fill_avx2(Kernels& k) { fill_kernels(k); }

}  // namespace stoker::order

#include "base/target_end.hpp"
#endif
