// SPDX-License-Identifier: Apache-2.0
// Sums of floats for the baseline's vectors (SSE2 or NEON), and the choice of an instruction set.
#include "reduce/floats.hpp"

#include <cstddef>
#include <cmath>
#include <cstring>

#include "base/simd.hpp"
#include "shared/half.hpp"
#include "shared/reduce_fold.hpp"

namespace stoker::floats {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "reduce/floats.ipp"

Kernels filled(void (*fill)(Kernels&)) {
  Kernels k;
  fill(k);
  return k;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels plain = filled(fill_plain);
#if defined(__x86_64__)
  static const Kernels avx2 = filled(fill_avx2), avx512 = filled(fill_avx512);
  if (isa() == Isa::AVX512) return avx512;
  if (isa() == Isa::AVX2) return avx2;
#endif
  return plain;
}

void fill_plain(Kernels& k) { fill_kernels(k); }

Sum find(Term term) { return kernels().sum[static_cast<int>(term)]; }

}  // namespace stoker::floats
