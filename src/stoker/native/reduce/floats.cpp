// SPDX-License-Identifier: Apache-2.0
// Sums of floats for the baseline's vectors (SSE2 or NEON), and the choice of an instruction set.
#include "reduce/floats.hpp"

#include <cstddef>
#include <cmath>
#include <cstring>

#include "base/forms.hpp"
#include "shared/half.hpp"
#include "shared/reduce_fold.hpp"

namespace stoker::floats {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "reduce/floats.ipp"

}  // namespace

const Kernels& kernels() { return form_of_isa<Kernels, STOKER_FILL_FORMS>(); }

void fill_plain(Kernels& k) { fill_kernels(k); }

Sum find(Term term) { return kernels().sum[static_cast<int>(term)]; }

}  // namespace stoker::floats
