// SPDX-License-Identifier: Apache-2.0
// The kernels for pictures of a GPU's JPEG engines and outputs of float32.
#pragma once
#include "device/nvjpeg_windows.cuh"

namespace stoker::nvjpeg {

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_nvjpeg_place_f32(uint64_t rows, uint64_t row_bytes, uint64_t starts, uint64_t count, uint64_t first) {
  place<float>(rows, row_bytes, starts, count, first);
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4)
    stoker_nvjpeg_compare_f32(uint64_t rows, uint64_t row_bytes, uint64_t differences, uint64_t starts, uint64_t count,
                              uint64_t first) {
  compare<float>(rows, row_bytes, differences, starts, count, first);
}

}  // namespace stoker::nvjpeg
