// SPDX-License-Identifier: Apache-2.0
// What the host tells the JPEG kernels about a row: from a header and a window.
#pragma once
#include "cuda/jpeg_index.cuh"
#include "jpeg_parts.hpp"

namespace stoker::jpeg::gpu {

// Whether one scan is not enough to decode the file: the host makes the coefficients.
bool in_several_scans(const Info& info);

// All but where things are in memory.
Row describe(const Info& info, const Window& window, Format format, int scale_log2);

// How readers make pixels of the planes of what `row` describes.
planar::Form form_of(const Row& row);

// Whether the samples of a row stay, and whether pixels are made of them.
inline bool in_planes(const Row& row) { return row.image.at != 0; }
inline bool makes_pixels(const Row& row) { return !in_planes(row) || row.image.pixels; }

inline size_t blocks_of(const Plane& plane) { return static_cast<size_t>(plane.columns) * plane.rows; }

// Blocks of the scan up to the last one that is needed.
inline size_t scan_blocks(const Row& row) { return size_t{row.needed_rows} * row.mcu_columns * row.blocks; }

// Whether the data may have so many rows of MCUs. A block takes two bits or more, one of DC and one of AC; what a few bytes
// claim to be would take a lot of memory.
bool may_have(const Row& row, uint32_t mcu_rows);

uint32_t segments_in(const Row& row);

// CTAs for a known file, so that each has about as many pieces as threads. They take what there is by turns, so that it
// does no harm if this is wrong: but what is one too many waits for room on a multiprocessor, as do those behind it.
uint32_t shares_of(const Row& row, uint32_t threads);

}  // namespace stoker::jpeg::gpu
