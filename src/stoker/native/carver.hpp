// SPDX-License-Identifier: Apache-2.0
// Pieces of one allocation, each beginning at a cache line.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define STOKER_GUARDED 1
#elif defined(__has_feature)
#define STOKER_GUARDED __has_feature(address_sanitizer)
#endif
#if STOKER_GUARDED
#include <sanitizer/asan_interface.h>
#endif

namespace stoker {

// A first pass without memory measures, the second hands out. Under AddressSanitizer what lies between the pieces must
// not be touched.
class Carver {
 public:
  explicit Carver(uint8_t* base = nullptr) : base_(base) {}
  template <typename T>
  T* take(size_t n) {
    const size_t at = used_, bytes = n * sizeof(T);
    used_ += (bytes + 63) / 64 * 64;
#if STOKER_GUARDED
    used_ += 64;
    if (base_) {
      __asan_unpoison_memory_region(base_ + at, bytes);
      __asan_poison_memory_region(base_ + at + bytes, used_ - at - bytes);
    }
#endif
    return base_ ? reinterpret_cast<T*>(base_ + at) : nullptr;
  }
  size_t used() const { return used_; }

 private:
  uint8_t* base_;
  size_t used_ = 0;
};

}  // namespace stoker
