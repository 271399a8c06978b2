// SPDX-License-Identifier: Apache-2.0
// The kernels for pictures of a GPU's JPEG engines and outputs of bytes.
#pragma once
#include "device/nvjpeg_windows.cuh"

namespace stoker::nvjpeg {

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_nvjpeg_place(uint64_t rows, uint64_t row_bytes, uint64_t starts, uint64_t count, uint64_t first) {
  place<uint8_t>(rows, row_bytes, starts, count, first);
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_nvjpeg_compare(uint64_t rows, uint64_t row_bytes, uint64_t differences, uint64_t starts, uint64_t count,
                          uint64_t first) {
  compare<uint8_t>(rows, row_bytes, differences, starts, count, first);
}

}  // namespace stoker::nvjpeg
