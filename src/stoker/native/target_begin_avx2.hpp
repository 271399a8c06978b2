// SPDX-License-Identifier: Apache-2.0
// No include guard: from here to target_end.hpp functions are compiled for AVX2. Included after all other headers.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed only to functions that are inlined
#pragma GCC target("avx2,f16c")
#endif
