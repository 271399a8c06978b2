// SPDX-License-Identifier: Apache-2.0
// Conversion of coefficients to samples, only for the blocks of the window.
#pragma once
#include "device/jpeg_inverse.cuh"
#include "device/row_blocks.cuh"
#include "shared/jpeg_order.cuh"
#include "shared/jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kTransformThreads = 256;

STOKER_CONSTANT ZigZag kZigZag;

constexpr uint32_t kCoefficientPitch = 72;  // of a block: 64, padded to avoid bank conflicts

struct TransformShared {
  // Per block, column by column.
  alignas(16) uint16_t coefficient[kTransformThreads / 8 * kCoefficientPitch];
  alignas(16) int32_t tile[kTransformThreads / 8 * kTileWords];
  alignas(16) uint16_t quantiser[64];  // column by column
  alignas(4) uint8_t position[64];     // destination of each coefficient in memory
  struct {
    uint32_t offset;  // offset of the block's first sample in the plane
    uint32_t dc;      // 16 bits; 0 if the host computed it
  } block[kBlocksPerCta];
};

STOKER_DEVICE void load_tables(const Row& row, const Plane& plane, TransformShared& shared) {
  const uint8_t* const from = pointer<const uint8_t>(row.file) + plane.quantiser;
  for (uint32_t i = thread_index(); i < 64; i += thread_count()) {
    const uint32_t y = kZigZag.row[i], x = kZigZag.column[i];
    shared.quantiser[8 * x + y] =
        static_cast<uint16_t>(plane.wide ? from[2 * i] << 8 | from[2 * i + 1] : static_cast<int>(from[i]));
    shared.position[i] = static_cast<uint8_t>(row.host_coefficients ? 8 * (i % 8) + i / 8 : 8 * x + y);
  }
}

// Return the DC coefficient of a block: the running sum within its segment.
STOKER_DEVICE uint32_t predicted_dc(const Row& row, const RowBuffers& buffers, const Plane& plane, uint32_t column,
                                    uint32_t block_row) {
  const int16_t* const dc = pointer<const int16_t>(buffers.dc);
  const uint32_t mcu = block_row / plane.v * row.mcu_columns + column / plane.h;
  const uint32_t inside = block_row % plane.v * plane.h + column % plane.h;
  uint32_t sum = static_cast<uint32_t>(dc[mcu * row.blocks + plane.first_block + inside]);
  if (row.restart_interval && mcu >= row.restart_interval) {
    const uint32_t last = mcu / row.restart_interval * row.restart_interval - 1;
    sum -= static_cast<uint32_t>(dc[last * row.blocks + plane.first_block + plane.h * plane.v - 1]);
  }
  return static_cast<uint16_t>(sum);
}

// One thread finds the data of a block for the eight that transform it.
STOKER_DEVICE void find_blocks(const Row& row, const RowBuffers& buffers, const Plane& plane, uint32_t index,
                               uint32_t begin, uint32_t end, TransformShared& shared) {
  for (uint32_t n = begin + thread_index(); n < end; n += thread_count()) {
    const uint32_t y = n / plane.columns, x = n - y * plane.columns;
    shared.block[n - begin] = {
        plane.size * (y * buffers.pitch[index] + x),
        row.host_coefficients ? 0 : predicted_dc(row, buffers, plane, plane.first_column + x, plane.first_row + y)};
  }
}

// Load a lane's eighth of block `n` of the plane.
STOKER_DEVICE Words4 load_coefficients(const Row& row, const RowBuffers& buffers, const Plane& plane, uint32_t index,
                                       uint32_t n, const Lane& lane) {
  Words4 out = {};
  if (!lane.there) return out;
  const Words4* const plane_begin =
      pointer<const Words4>(buffers.coefficients) + 8 * uint64_t{buffers.first_home[index]};
  if (row.host_coefficients && plane.size == 1) {  // each block is a single mean
    if (lane.index == 0) out.v[0] = reinterpret_cast<const uint16_t*>(plane_begin)[n];
    return out;
  }
  return plane_begin[8 * uint64_t{n} + lane.index];
}

// Scatter eight coefficients that are contiguous in memory to their positions.
STOKER_DEVICE void scatter(const Words4& coefficients, const TransformShared& shared, const Lane& lane, uint16_t* to) {
  const uint32_t* const positions = reinterpret_cast<const uint32_t*>(shared.position) + 2 * lane.index;
  STOKER_UNROLL for (int i = 0; i < 8; ++i) to[positions[i / 4] >> (8 * (i % 4)) & 255] =
      static_cast<uint16_t>(coefficients.v[i / 2] >> (16 * (i % 2)));
}

STOKER_DEVICE void read_tile_row(const Lane& lane, int32_t* out) {
  warp_barrier();
  for (uint32_t i = 0; i < 8; ++i) out[i] = lane.tile[lane.index * kTilePitch + i];
  warp_barrier();
}

// The same for four or two samples per side.
template <uint32_t kSize>
STOKER_DEVICE void transform_reduced(const Lane& lane, const Column& quantiser, const Column& coefficients) {
  int32_t in[8], column[kSize];
  dequantise(coefficients, quantiser, in);
  if constexpr (kSize == 4) column4(in, !any_of_block(coefficients.below_but_fourth()), column);
  else column2(in, lane.index == 0, column);
  for (uint32_t i = 0; i < kSize; ++i) lane.tile[i * kTilePitch + lane.index] = column[i];
  read_tile_row(lane, in);
  if (!lane.there || lane.index >= kSize) return;
  int32_t samples[kSize];
  if constexpr (kSize == 4) transform4(in, kShift4 + 7, samples);
  else transform2(in, kShift2 + 7, samples);
  uint8_t* const out = pointer<uint8_t>(lane.out + lane.index * lane.pitch);
  for (uint32_t i = 0; i < kSize; ++i) out[i] = to_sample(samples[i]);
}

// A row of the table is a plane: kMaxPlanes times the index of the RowBuffers, plus the plane's.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 4) stoker_jpeg_transform(uint64_t rows, uint64_t row_buffers, uint64_t statuses,
                                                                 uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(TransformShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const uint32_t index = work.row % kMaxPlanes, begin = work.number * kBlocksPerCta;
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row / kMaxPlanes];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  const Plane& plane = row.plane[index];
  if (pointer<const uint32_t>(statuses)[buffers.row] & kFailures) return;
  const uint32_t blocks = static_cast<uint32_t>(plane.columns) * plane.rows;
  const uint32_t end = begin + kBlocksPerCta < blocks ? begin + kBlocksPerCta : blocks;
  load_tables(row, plane, shared);
  find_blocks(row, buffers, plane, index, begin, end, shared);
  block_barrier();

  const uint32_t group = thread_index() / 8, groups = thread_count() / 8;
  Lane lane = {thread_index() % 8, shared.tile + group * kTileWords, 0, buffers.pitch[index], false};
  uint16_t* const own = shared.coefficient + group * kCoefficientPitch;
  const Column quantiser = {reinterpret_cast<const Words4*>(shared.quantiser)[lane.index]};
  for (uint32_t n = begin + group; n < begin + kBlocksPerCta; n += groups) {
    lane.there = n < end;
    Words4 coefficients = load_coefficients(row, buffers, plane, index, n, lane);
    if (lane.there) {
      lane.out = buffers.samples[index] + shared.block[n - begin].offset;
      if (lane.index == 0) coefficients.v[0] |= shared.block[n - begin].dc;
    }
    scatter(coefficients, shared, lane, own);
    warp_barrier();
    const Column column = {reinterpret_cast<const Words4*>(own)[lane.index]};
    warp_barrier();
    if (plane.size == 8) transform_full(lane, quantiser, column);
    else if (plane.size == 4) transform_reduced<4>(lane, quantiser, column);
    else if (plane.size == 2) transform_reduced<2>(lane, quantiser, column);
    else if (lane.there && lane.index == 0)
      *pointer<uint8_t>(lane.out) =
          mean_sample(static_cast<int16_t>(column.at(0)), static_cast<int16_t>(quantiser.at(0)));
  }
}

}  // namespace stoker::jpeg::gpu
