// SPDX-License-Identifier: Apache-2.0
// Column statistics for AVX-512.
#if defined(__x86_64__)
#include <immintrin.h>

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

inline V<uint64_t> byte_sums(V<uint8_t> x) { return (V<uint64_t>)_mm512_sad_epu8((__m512i)x, _mm512_setzero_si512()); }

#include "reduce/byte_sums.ipp"

}  // namespace

void fill_avx512(Kernels& k) {
  fill_kernels(k);
  k.add[static_cast<int>(Statistic::Sum)][0] = add_bytes;
}

}  // namespace stoker::columns

#include "base/target_end.hpp"
#endif
