// SPDX-License-Identifier: Apache-2.0
// Begin of decoding: one thread block (CTA) per row unstuffs its data, and others clear the coefficients.
#pragma once
#include "device/jpeg_clear.cuh"
#include "device/jpeg_unstuff.cuh"

namespace stoker::jpeg::gpu {

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2) stoker_jpeg_unstuff(uint64_t rows, uint64_t row_buffers, uint64_t statuses) {
  STOKER_SHARED(UnstuffShared, shared);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[block_index()];
  if (buffers.tables) return;  // the row is spread over the device
  const Row& row = pointer<const Row>(rows)[buffers.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + buffers.row;
  const Extent data = {row.file + row.scan, row.file + row.file_bytes, row.restart_interval != 0};
  if (thread_index() == 0) {
    shared.end = shared.limit = kNone;
    pointer<uint32_t>(buffers.segment_start)[0] = 0;
  }
  block_barrier();
  Unstuffed place;
  unstuff_tiles(row, buffers, data, data.begin & ~uint64_t{kUnstuffBytes - 1}, data.end, place, shared, status);
  end_data(row, buffers, place, shared, status);
}

// Clear `count` times 16 bytes.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2) stoker_jpeg_clear(uint64_t memory, uint64_t count) {
  const uint64_t begin = uint64_t{block_index()} * kClearsPerCta, end = begin + kClearsPerCta;
  clear(memory, begin, end < count ? end : count);
}

}  // namespace stoker::jpeg::gpu
