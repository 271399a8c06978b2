// SPDX-License-Identifier: Apache-2.0
// Descriptors that the host passes to the kernels for pictures decoded by a GPU's JPEG engines.
#pragma once
#include "shared/device.cuh"

namespace stoker::nvjpeg {

enum class Maker : uint32_t { None, Engine, Exact };

// One row. Stored pixel (y, x) of the window goes to first + y * step_y + x * step_x.
struct Row {
  uint64_t picture;  // the whole picture, rows of 3-byte pixels
  uint64_t out;
  int64_t step_y, step_x;
  uint64_t exact;  // the same window from the exact decoder; 0: it is not compared
  int64_t exact_step_y, exact_step_x;
  uint64_t file;  // host address
  uint64_t file_bytes;
  uint32_t pitch;
  uint32_t x0, y0, width, height;
  Maker maker;
  uint32_t refused;  // status of the engines' library if it refused the file; used by the host
  // Index and number of the row's differences in the report, and the report's offset in bytes.
  uint32_t first_difference, differences, report;
  uint32_t placed;  // the window is copied to `out`; 0: later steps read the picture, and `out` is the window within it
  uint32_t unused[3];
};
static_assert(sizeof(Row) == 128);

// Pixels of a window that a thread block (CTA) processes, and its threads.
constexpr uint32_t kPixelsPerCta = 4096, kThreads = 256;

// Difference between a thread block's bytes and the exact ones.
struct Difference {
  uint32_t sum, most;
};

template <typename T>
STOKER_DEVICE T* at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace stoker::nvjpeg
