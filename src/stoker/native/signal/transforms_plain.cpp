// SPDX-License-Identifier: Apache-2.0
// Transforms for the baseline's vectors (SSE2 or NEON), and the choice of an instruction set.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fence.hpp"
#include "base/forms.hpp"
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

}  // namespace

void fill_plain(Transforms& t) { t = {kFrames, forward, inverse, convolve}; }

const Transforms& transforms() { return form_of_isa<Transforms, STOKER_FILL_FORMS>(); }

int64_t transform_bytes(const fft::Plan& plan, int64_t length) {
  constexpr int64_t kWidest = 64;  // bytes of the widest vectors
  const int64_t bytes = (2 * int64_t{plan.bins} + plan.samples) * kWidest + spectrum_bytes(plan, length);
  return (bytes + kWidest - 1) / kWidest * kWidest;
}

}  // namespace stoker::signal
