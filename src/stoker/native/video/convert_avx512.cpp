// SPDX-License-Identifier: Apache-2.0
// Conversion of video frames for AVX-512.
#if defined(__x86_64__)
#include "video/convert.hpp"

#include "base/target_begin_avx512.hpp"

namespace stoker::video {
namespace {

#include "video/convert.ipp"

}  // namespace

Forms forms_avx512() { return kForms; }

}  // namespace stoker::video

#include "base/target_end.hpp"
#endif
