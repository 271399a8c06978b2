// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows of float32 for AVX2.
#if defined(__x86_64__)
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "filter/tap_sums.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::correlate {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "filter/tap_sums.ipp"

}  // namespace

TapSums tap_sums_avx2() { return kTapSums; }

}  // namespace stoker::correlate

#include "base/target_end.hpp"
#endif
