// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/jpeg_row_buffers.hpp"

#include <algorithm>

namespace stoker::jpeg::gpu {

using stoker::gpu::Address;

namespace {

uint32_t pitch_of(const Plane& p) { return (uint32_t{p.size} * p.columns + 31) / 32 * 32; }

void allocate_entropy(const Row& row, uint32_t threads, bool spread, BumpAllocator& working, RowBuffers& buffers) {
  buffers.segments = segments_in(row);
  buffers.states = threads + buffers.segments;
  buffers.words = working.allocate(row.file_bytes - row.scan + 4 * (kPaddingWords + 1));
  buffers.segment_start = working.allocate(4 * (size_t{buffers.segments} + 1));
  buffers.segment_first = working.allocate(4 * (size_t{buffers.segments} + 1));
  buffers.state = working.allocate(SubsequenceState::kBytes * buffers.states * candidates_of(row, spread));
  buffers.checksum = working.allocate(sizeof(Checksum));
  if (spread) {
    buffers.tables = working.allocate(kTablesBytes);
    buffers.progress = working.allocate(sizeof(Progress));
  }
  const size_t blocks = scan_blocks(row);
  buffers.homes = working.allocate(sizeof(uint32_t) * (blocks + 2));
  buffers.dc = working.allocate(sizeof(int16_t) * blocks);
}

// Return the address of the first sample that is in memory.
Address first_sample(const planar::Component& c, const Plane& p) {
  return c.corner + uint64_t{p.size} * p.first_row * c.pitch + uint64_t{p.size} * p.first_column;
}

}  // namespace

size_t memory_of(const Row& row, uint32_t threads, bool spread) {
  size_t bytes = spread ? kTablesBytes + sizeof(Progress) : 0;
  for (const Plane& p : row.plane)
    bytes += blocks_of(p) * ((row.host_coefficients ? 0 : kBlockBytes) + (in_planes(row) ? 0 : 64));
  if (row.host_coefficients) return bytes;
  const size_t segments = segments_in(row);
  bytes += row.file_bytes - row.scan + 2 * sizeof(uint32_t) * segments +
           SubsequenceState::kBytes * (threads + segments) * candidates_of(row, spread);
  return bytes + (sizeof(uint32_t) + sizeof(int16_t)) * scan_blocks(row);
}

size_t sample_bytes(const Plane& p) { return size_t{pitch_of(p)} * p.size * p.rows; }

planar::Component describe_component(const Plane& p, Address at) {
  planar::Component c = {};
  static_cast<planar::Shape&>(c) = p;
  c.pitch = pitch_of(p);
  c.first = p.size * p.first_column;
  c.last = std::min(c.first + p.size * p.columns, static_cast<int32_t>(p.width)) - 1;
  const uint64_t before = static_cast<uint64_t>(c.first);
  c.corner = at + before % 4 - uint64_t{p.size} * p.first_row * c.pitch - before;
  return c;
}

RowBuffers allocate_row(const Row& row, uint32_t index, uint32_t threads, bool spread, BumpAllocator& working,
                        BumpAllocator& coefficients) {
  RowBuffers buffers = {};
  buffers.row = index;
  if (!row.host_coefficients) allocate_entropy(row, threads, spread, working, buffers);
  size_t kept = 0;
  for (int i = 0; i < row.components; ++i) {
    const Plane& p = row.plane[i];
    buffers.pitch[i] = pitch_of(p);
    buffers.samples[i] = in_planes(row) ? first_sample(row.image.component[i], p) : working.allocate(sample_bytes(p));
    buffers.first_home[i] = row.host_coefficients ? row.first_host_block[i] : static_cast<uint32_t>(kept);
    kept += blocks_of(p);
  }
  buffers.coefficients = row.host_coefficients ? row.host_coefficients : coefficients.allocate(kBlockBytes * kept);
  return buffers;
}

void move_by(RowBuffers& buffers, const Row& row, Address memory, Address coefficients) {
  for (int i = 0; i < row.components && !in_planes(row); ++i) buffers.samples[i] += memory;
  if (row.host_coefficients) return;
  buffers.words += memory;
  buffers.segment_start += memory;
  buffers.segment_first += memory;
  buffers.state += memory;
  buffers.checksum += memory;
  if (buffers.tables) {
    buffers.tables += memory;
    buffers.progress += memory;
  }
  buffers.homes += memory;
  buffers.dc += memory;
  buffers.coefficients += coefficients;
}

}  // namespace stoker::jpeg::gpu
