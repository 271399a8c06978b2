// SPDX-License-Identifier: Apache-2.0
// Poisoning of memory inside an allocation under AddressSanitizer; no effect otherwise.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define STOKER_GUARDED 1
#elif defined(__has_feature)
#define STOKER_GUARDED __has_feature(address_sanitizer)
#else
#define STOKER_GUARDED 0
#endif
#if STOKER_GUARDED
#include <sanitizer/asan_interface.h>
#endif

namespace stoker {

#if STOKER_GUARDED
inline void guard(const void* at, size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void allow(const void* at, size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
inline void guard(const void*, size_t) {}
inline void allow(const void*, size_t) {}
#endif

}  // namespace stoker
