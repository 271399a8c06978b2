// SPDX-License-Identifier: Apache-2.0
// Start of code for AVX-512 with VBMI, VBMI2 and VNNI, until base/target_end.hpp; the compiler's own vectors have 256
// bits. It has no include guard; include it after all other headers.
#if defined(__clang__)
#pragma clang attribute push(                                                                                    \
    __attribute__((target("avx2,popcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512vnni"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed only to functions that are inlined
#pragma GCC target( \
    "avx2,popcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512vnni,prefer-vector-width=256")
#endif
