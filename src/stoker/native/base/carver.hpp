// SPDX-License-Identifier: Apache-2.0
// Suballocation of one memory block into pieces that each begin at a cache line.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/guarded.hpp"

namespace stoker {

// Hands out pieces in order. A first run without memory measures the total size, a second run returns addresses. Under
// AddressSanitizer the gaps between the pieces are poisoned.
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
      allow(base_ + at, bytes);
      guard(base_ + at + bytes, used_ - at - bytes);
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
