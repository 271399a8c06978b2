// SPDX-License-Identifier: Apache-2.0
// Order statistics of windows for AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "filter/order.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx512.hpp"

namespace stoker::order {
namespace {

#define STOKER_VECTOR_BYTES 64
#include "base/vectors.ipp"

// Shift in kBytes and 2 kBytes, at most 16, from the next vector.
#define STOKER_SHIFTED
template <int kBytes, class X>
inline void shift_in(X now, X next, X& once, X& twice) {
  const __m512i a = (__m512i)now, b = _mm512_maskz_alignr_epi64(0xFF, (__m512i)next, a, 2);
  once = (X)_mm512_alignr_epi8(b, a, kBytes);
  twice = (X)_mm512_alignr_epi8(b, a, 2 * kBytes);
}

#include "filter/order.ipp"

}  // namespace

void fill_avx512(Kernels& k) { fill_kernels(k); }

}  // namespace stoker::order

#include "base/target_end.hpp"
#endif
