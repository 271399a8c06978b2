// SPDX-License-Identifier: Apache-2.0
// The kernels for pictures of a GPU's JPEG engines and outputs of uint16.
#pragma once
#include "device/nvjpeg_windows.cuh"

namespace stoker::nvjpeg {

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_nvjpeg_place_u16(uint64_t rows, uint64_t row_bytes, uint64_t starts, uint64_t count, uint64_t first) {
  place<uint16_t>(rows, row_bytes, starts, count, first);
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_nvjpeg_compare_u16(uint64_t rows, uint64_t row_bytes, uint64_t differences, uint64_t starts, uint64_t count,
                              uint64_t first) {
  compare<uint16_t>(rows, row_bytes, differences, starts, count, first);
}

}  // namespace stoker::nvjpeg
