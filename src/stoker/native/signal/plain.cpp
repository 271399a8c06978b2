// SPDX-License-Identifier: Apache-2.0
// Spectra for the baseline's vectors (SSE2 or NEON), and the choice of an instruction set.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fence.hpp"
#include "base/forms.hpp"
#include "shared/border.hpp"
#include "shared/half.hpp"
#include "shared/xmath_float.hpp"
#include "signal/signal.hpp"

namespace stoker::signal {
namespace {

#define STOKER_VECTOR_BYTES 16
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

void fill_plain(Kernels& k) { fill_kernels(k); }

const Kernels& kernels() { return form_of_isa<Kernels, STOKER_FILL_FORMS>(); }

// Memory for the widest vectors.
constexpr int64_t kWidest = 64;

constexpr int64_t kTiledBins = 4096;

int64_t tile_bytes(const fft::Plan& plan) {
  return plan.bins <= kTiledBins ? (int64_t{plan.bins} + 1) * kMostOfGroup * static_cast<int64_t>(sizeof(float)) : 0;
}

int64_t spectrum_bytes(const fft::Plan& plan, int64_t length) {
  const int64_t points = (plan.has_chirp() ? 4 : 2) * int64_t{plan.length};
  const int64_t before = (points + plan.bins) * kWidest + 2 * kMostOfGroup * length * int64_t{sizeof(float)} +
                         int64_t{plan.length} * int64_t{sizeof(int32_t)};
  return (before + kWidest - 1) / kWidest * kWidest + tile_bytes(plan);
}

int64_t project_bytes(int64_t bins, int64_t rows) {
  return std::max(bins + rows, std::min(bins, kPackedBins) * kTile) * kWidest;
}

}  // namespace stoker::signal
