// SPDX-License-Identifier: Apache-2.0
// No include guard: ends what target_begin_*.hpp began.
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
