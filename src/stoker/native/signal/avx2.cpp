// SPDX-License-Identifier: Apache-2.0
// Spectra for AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fence.hpp"
#include "shared/border.hpp"
#include "shared/half.hpp"
#include "signal/signal.hpp"

#include "base/target_begin_avx2.hpp"

#include "shared/xmath_float.hpp"  // its vectors are those of the target

namespace stoker::signal {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "signal/frames.ipp"

#include "signal/bins.ipp"
#include "signal/loudness.ipp"
#include "signal/resample.ipp"
#include "signal/spectrum.ipp"

void fill_kernels(Kernels& k) {
  k = {spectrum,       project,        decibels,      differences,  resample,  kFrames,
       begin_spectrum, group_spectrum, group_project, store_frames, hop_powers};
}

}  // namespace

void fill_avx2(Kernels& k) { fill_kernels(k); }

}  // namespace stoker::signal

#include "base/target_end.hpp"
#endif
