// SPDX-License-Identifier: Apache-2.0
// Sums of products in words for AVX2.
#if defined(__x86_64__)
#include <cstddef>
#include <cstring>

#include "filter/correlate_words.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::correlate {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "filter/correlate_words.ipp"

}  // namespace

WordLoops words_avx2() { return kLoops; }

}  // namespace stoker::correlate

#include "base/target_end.hpp"
#endif
