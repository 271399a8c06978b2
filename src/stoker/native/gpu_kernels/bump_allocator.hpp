// SPDX-License-Identifier: Apache-2.0
// Division of one block of device memory among the buffers of a batch's rows.
#pragma once
#include <cstddef>

namespace stoker::gpu {

// Bump allocator: returns consecutive offsets that are multiples of 256, and frees nothing. The caller allocates
// `used()` bytes and adds the block's address.
class BumpAllocator {
 public:
  size_t allocate(size_t bytes) {
    const size_t at = used_;
    used_ += (bytes + 255) & ~size_t{255};
    return at;
  }
  size_t used() const { return used_; }

 private:
  size_t used_ = 0;
};

}  // namespace stoker::gpu
