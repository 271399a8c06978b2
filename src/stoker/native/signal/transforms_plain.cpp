// SPDX-License-Identifier: Apache-2.0
// Transforms for the baseline's vectors (SSE2 or NEON), and the choice of an instruction set.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/simd.hpp"
#include "shared/border.hpp"
#include "shared/half.hpp"
#include "shared/xmath_float.hpp"
#include "signal/transforms.hpp"

#pragma GCC diagnostic ignored "-Wunused-function"  // of signal/spectrum.ipp

namespace stoker::signal {
namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "signal/frames.ipp"

#include "signal/spectrum.ipp"
#include "signal/transforms.ipp"

Transforms filled(void (*fill)(Transforms&)) {
  Transforms t;
  fill(t);
  return t;
}

}  // namespace

void fill_plain(Transforms& t) { t = {kFrames, forward, inverse, convolve}; }

const Transforms& transforms() {
  static const Transforms plain = filled(fill_plain);
#if defined(__x86_64__)
  static const Transforms avx2 = filled(fill_avx2), avx512 = filled(fill_avx512);
  if (isa() == Isa::AVX512) return avx512;
  if (isa() == Isa::AVX2) return avx2;
#endif
  return plain;
}

int64_t transform_bytes(const fft::Plan& plan, int64_t length) {
  constexpr int64_t kWidest = 64;  // bytes of the widest vectors
  const int64_t bytes = (2 * int64_t{plan.bins} + plan.samples) * kWidest + spectrum_bytes(plan, length);
  return (bytes + kWidest - 1) / kWidest * kWidest;
}

}  // namespace stoker::signal
