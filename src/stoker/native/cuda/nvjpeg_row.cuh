// SPDX-License-Identifier: Apache-2.0
// What the host tells the kernels about whole pictures that a GPU's JPEG engines have decoded.
#pragma once
#include "device.cuh"

namespace stoker::nvjpeg {

enum class Maker : uint32_t { None, Engine, Exact };

// A row, and where a window's stored pixel (y, x) of it goes: at first + y * step_y + x * step_x.
struct Row {
  uint64_t picture;           // the whole, rows of 3-byte pixels
  uint64_t out;
  int64_t step_y, step_x;
  uint64_t exact;             // the window once more, from the exact decoder; 0: it is not compared
  int64_t exact_step_y, exact_step_x;
  uint64_t file;              // on the host
  uint64_t file_bytes;
  uint32_t pitch;
  uint32_t x0, y0, width, height;
  Maker maker;
  uint32_t refused;           // by the engines' library, which says why; the host's
  uint32_t first_difference, differences, report;  // where they are in the report, and at which byte they begin
  uint32_t placed;            // it is copied to `out`; 0: later steps read the picture, where `out` is the window
  uint32_t unused[3];
};
static_assert(sizeof(Row) == 128);

// Work of one CTA: so many pixels of a window, from `first` on.
struct Item {
  uint32_t row, first;
};
constexpr uint32_t kPixelsPerItem = 4096, kThreads = 256;

// Between an item's bytes and the exact ones.
struct Difference {
  uint32_t sum, most;
};

template <typename T>
STOKER_DEVICE T* at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace stoker::nvjpeg
