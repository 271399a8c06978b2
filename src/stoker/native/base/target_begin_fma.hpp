// SPDX-License-Identifier: Apache-2.0
// Start of code for AVX2 with FMA, until base/target_end.hpp. It has no include guard; include it after all other
// headers.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed only to functions that are inlined
#pragma GCC target("avx2,f16c,fma")
#endif
