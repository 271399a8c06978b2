// SPDX-License-Identifier: Apache-2.0
// Constants of the audio resampler's sums, for the CPU and for GPUs.
#pragma once
#include <cstdint>

namespace stoker::signal {

// Product k of an output is added to partial sum k % kPartialSums; then the upper half of the sums is added to the lower
// half, until one is left. Taps are a multiple of it.
constexpr int64_t kPartialSums = 16;
constexpr int64_t kInterpolatedPhases = 2048;  // of filters that are interpolated between their phases

}  // namespace stoker::signal
