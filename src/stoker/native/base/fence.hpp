// SPDX-License-Identifier: Apache-2.0
// Order of non-temporal stores.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker {

// Make this thread's non-temporal stores visible before it announces that it is done.
inline void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace stoker
