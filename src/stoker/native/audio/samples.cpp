// SPDX-License-Identifier: Apache-2.0
// Samples for the baseline's vectors, and the choice of an instruction set.
#include "audio/samples.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/forms.hpp"

namespace stoker::wav {
namespace {

#include "audio/samples.ipp"

}  // namespace

void fill_plain(Samples& s) { s = {convert}; }

const Samples& samples() {
#if defined(__x86_64__)
  return form_of_isa<Samples, fill_plain, fill_avx2, fill_avx2>();  // wider vectors gain nothing: memory is the limit
#else
  return form_of_isa<Samples, fill_plain>();
#endif
}

}  // namespace stoker::wav
