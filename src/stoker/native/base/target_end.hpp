// SPDX-License-Identifier: Apache-2.0
// End of the code that target_begin_*.hpp started. It has no include guard.
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
