// SPDX-License-Identifier: Apache-2.0
// Rows of colours from a mosaic for AVX2.
#if defined(__x86_64__)
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "filter/debayer.hpp"
#include "shared/half.hpp"

#include "base/target_begin_avx2.hpp"

namespace stoker::debayer {
namespace {

#define STOKER_VECTOR_BYTES 32
#include "base/vectors.ipp"

#include "filter/debayer.ipp"

}  // namespace

MosaicForms forms_avx2() { return kForms; }

}  // namespace stoker::debayer

#include "base/target_end.hpp"
#endif
