// SPDX-License-Identifier: Apache-2.0
// Transforms for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fence.hpp"
#include "shared/border.hpp"
#include "shared/half.hpp"
#include "signal/transforms.hpp"

#pragma GCC diagnostic ignored "-Wunused-function"  // of signal/spectrum.ipp

#include "base/target_begin_avx2.hpp"

#include "shared/xmath_float.hpp"  // its vectors are those of the target

namespace stoker::signal {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "signal/frames.ipp"

#include "signal/spectrum.ipp"
#include "signal/transforms.ipp"

}  // namespace

void fill_avx2(Transforms& t) { t = {kFrames, forward, inverse, convolve}; }

}  // namespace stoker::signal

#include "base/target_end.hpp"
#endif
