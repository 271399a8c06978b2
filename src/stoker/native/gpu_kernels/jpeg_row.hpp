// SPDX-License-Identifier: Apache-2.0
// Row descriptors of the JPEG kernels, computed from a header and a window.
#pragma once
#include "gpu_kernels/jpeg_parts.hpp"
#include "shared/jpeg_index.cuh"

namespace stoker::jpeg::gpu {

// Describe a row, without addresses.
Row describe(const Info& info, const Window& window, Format format, int scale_log2);

// Return how readers convert the planes of `row` to pixels.
planar::Form form_of(const Row& row);

// Whether the samples of a row are kept for later steps, and whether pixels are computed from them.
inline bool in_planes(const Row& row) { return row.image.at != 0; }
inline bool makes_pixels(const Row& row) { return !in_planes(row) || row.image.pixels; }

inline size_t blocks_of(const Plane& plane) { return static_cast<size_t>(plane.columns) * plane.rows; }

// Number of the scan's blocks up to the last needed one.
inline size_t scan_blocks(const Row& row) { return size_t{row.needed_rows} * row.mcu_columns * row.blocks; }

// Return whether the data can contain this many rows of MCUs. A block takes at least two bits, one of DC and one of AC.
// The check keeps a small file from claiming a huge picture, which would take a lot of memory.
bool may_have(const Row& row, uint32_t mcu_rows);

uint32_t segments_in(const Row& row);

// Return the number of thread blocks (CTAs) for a known file, so that each has about as many pieces as threads. The
// blocks take shares in turn, so the number only affects speed: a superfluous block waits for a free multiprocessor and
// delays the blocks that follow.
uint32_t shares_of(const Row& row, uint32_t threads);

}  // namespace stoker::jpeg::gpu
