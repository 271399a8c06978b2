// SPDX-License-Identifier: Apache-2.0
// Order statistics of windows for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

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

// Shift in kBytes and 2 kBytes, at most 16, from the next vector.
#define STOKER_SHIFTED
template <int kBytes, class X>
inline void shift_in(X now, X next, X& once, X& twice) {
  const __m256i a = (__m256i)now, b = _mm256_permute2x128_si256(a, (__m256i)next, 0x21);
  once = (X)_mm256_alignr_epi8(b, a, kBytes);
  twice = (X)_mm256_alignr_epi8(b, a, 2 * kBytes);
}

#include "filter/order.ipp"

}  // namespace

void fill_avx2(Kernels& k) { fill_kernels(k); }

}  // namespace stoker::order

#include "base/target_end.hpp"
#endif
