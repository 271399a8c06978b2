// SPDX-License-Identifier: Apache-2.0
// Block kernels for AVX2 with F16C.
#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "pixel/kernels.hpp"
#include "shared/element_random.hpp"
#include "shared/fused.hpp"
#include "shared/half.hpp"
#include "shared/xmath.hpp"

// This include comes last, so that no inline function of the standard library is compiled for AVX2: the linker might
// keep that copy for all files, also on machines without AVX2.
#include "base/target_begin_avx2.hpp"

#include "shared/element_normal.hpp"  // its vectors are those of the target

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"
#include "base/vectors_avx2.ipp"

#include "pixel/moves.ipp"

#include "pixel/mixes.ipp"

}  // namespace

void fill_avx2(Kernels& k) {
  fill_moves(k);
  k.mix_pixels = mix_pixels;
}

}  // namespace stoker::pixel

#include "base/target_end.hpp"
#endif
