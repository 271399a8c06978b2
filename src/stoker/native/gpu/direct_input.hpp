// SPDX-License-Identifier: Apache-2.0
// Second interface of a BufferAllocator (base/scratch.hpp) whose memory is copied to a device: files may be read to the
// device without the host memory in between.
#pragma once
#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"

namespace stoker::gpu {

class DirectInput {
 public:
  // Return whether the next read of `bytes` bytes should be a direct one.
  virtual bool wants_direct(size_t bytes) = 0;
  // Read `bytes` bytes of an open file from `offset` on into device memory of the batch. Return the device address, or
  // 0 if they could not be read there; the caller then reads them into host memory. Throw BatchLimitReached.
  virtual Address read_directly(int descriptor, uint64_t offset, size_t bytes) = 0;
  // Record the time of a read into host memory that a direct read would have replaced.
  virtual void record_staged(size_t bytes, uint64_t ns) noexcept = 0;

 protected:
  ~DirectInput() = default;
};

}  // namespace stoker::gpu
