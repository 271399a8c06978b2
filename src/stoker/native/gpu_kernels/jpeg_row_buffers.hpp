// SPDX-License-Identifier: Apache-2.0
// Memory for the intermediate results of a batch's rows.
#pragma once
#include <vector>

#include "gpu_kernels/bump_allocator.hpp"
#include "gpu_kernels/jpeg_row.hpp"

namespace stoker::jpeg::gpu {

using stoker::gpu::BumpAllocator;

constexpr size_t kBlockBytes = 64 * sizeof(int16_t);

// Rows whose intermediate results are in memory at the same time.
struct Group {
  std::vector<RowBuffers> row_buffers;  // with offsets instead of addresses until the memory is allocated
  size_t working = 0;                   // number of bytes before the coefficients
  size_t coefficients = 0;              // bytes
};

// Return the approximate memory of a row.
size_t memory_of(const Row& row, uint32_t threads, bool spread);

// Return the size of a component's needed samples.
size_t sample_bytes(const Plane& plane);

// Describe a component whose samples are in memory from `at` on. Their distance from a multiple of 4 equals the number
// of columns before them.
planar::Component describe_component(const Plane& plane, stoker::gpu::Address at);

// Allocate a row's buffers, as offsets, for entropy decoding in `threads` subsequences, which may be spread over the
// device.
RowBuffers allocate_row(const Row& row, uint32_t index, uint32_t threads, bool spread, BumpAllocator& working,
                        BumpAllocator& coefficients);

// Convert the offsets to addresses.
void move_by(RowBuffers& buffers, const Row& row, stoker::gpu::Address memory, stoker::gpu::Address coefficients);

}  // namespace stoker::jpeg::gpu
