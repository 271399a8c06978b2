// SPDX-License-Identifier: Apache-2.0
// The kernel that computes pixels of uint16.
#pragma once
#include "device/jpeg_conversion.cuh"

namespace stoker::jpeg::gpu {

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_jpeg_pixels_u16(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t starts, uint64_t count,
                           uint64_t first) {
  convert_pixels<uint16_t>(rows, row_buffers, statuses, starts, count, first);
}

}  // namespace stoker::jpeg::gpu
