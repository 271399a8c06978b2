// SPDX-License-Identifier: Apache-2.0
// Samples for AVX2.
#if defined(__x86_64__)
#include <cmath>
#include <cstring>
#include <type_traits>

#include "audio/samples.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::wav {
namespace {

#include "audio/samples.ipp"

}  // namespace

void fill_avx2(Samples& s) { s = {convert}; }

}  // namespace stoker::wav

#include "base/target_end.hpp"
#endif
