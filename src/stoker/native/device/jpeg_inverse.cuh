// SPDX-License-Identifier: Apache-2.0
// Inverse DCT at full size: eight lanes per block, each transforms a column and then a row.
#pragma once
#include "device/jpeg_clear.cuh"
#include "shared/jpeg_arithmetic.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kTilePitch = 9, kTileWords = 8 * kTilePitch;  // avoids bank conflicts between the lanes of a warp

// State of one of a block's eight lanes.
struct Lane {
  uint32_t index;  // 0 to 7: number of the column, then of the row
  int32_t* tile;   // of the block
  uint64_t out;    // address of the block's first sample
  uint64_t pitch;
  bool there;  // false: the lane only takes part in the warp's collectives
};

// Return whether `mine` is true for any of the block's lanes.
STOKER_DEVICE bool any_of_block(bool mine) { return (ballot(mine) >> (thread_index() % kWarp / 8 * 8) & 255) != 0; }

// Eight 16-bit numbers: a column of coefficients or quantisers in the layout of the shared memory.
struct Column {
  Words4 pairs;
  STOKER_DEVICE uint32_t at(int i) const { return i % 2 ? pairs.v[i / 2] >> 16 : pairs.v[i / 2]; }  // in the lower bits
  STOKER_DEVICE bool below() const { return (pairs.v[0] >> 16 | pairs.v[1] | pairs.v[2] | pairs.v[3]) != 0; }
  // A transform to four outputs ignores row 4.
  STOKER_DEVICE bool below_but_fourth() const {
    return (pairs.v[0] >> 16 | pairs.v[1] | pairs.v[2] >> 16 | pairs.v[3]) != 0;
  }
};

STOKER_DEVICE void dequantise(const Column& column, const Column& quantiser, int32_t* out) {
  STOKER_UNROLL for (int i = 0; i < 8; ++i) out[i] = static_cast<int16_t>(column.at(i) * quantiser.at(i));
}

// Transform a column of coefficients at full size. Values between columns and rows have 16 bits, two rows in a word.
STOKER_DEVICE void transform_full(const Lane& lane, const Column& quantiser, const Column& coefficients) {
  const bool one_row = !any_of_block(coefficients.below());
  int32_t in[8];
  dequantise(coefficients, quantiser, in);
  uint32_t sums[8];
  transform8(in, 1u << (kColumnShift - 1), sums);
  const uint32_t flat = static_cast<uint32_t>(flat_column(in[0])) & 0xFFFF;
  STOKER_UNROLL for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t pair = saturated_pair16(static_cast<int32_t>(sums[2 * i]) >> kColumnShift,
                                           static_cast<int32_t>(sums[2 * i + 1]) >> kColumnShift);
    lane.tile[8 * i + lane.index] = static_cast<int32_t>(one_row ? flat | flat << 16 : pair);
  }
  warp_barrier();
  const Words4* const row = reinterpret_cast<const Words4*>(lane.tile + 8 * (lane.index / 2));
  const Words4 left = row[0], right = row[1];
  warp_barrier();
  if (!lane.there) return;
  const uint32_t shift = lane.index % 2 ? 0 : 16;
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    in[i] = static_cast<int32_t>(left.v[i] << shift) >> 16;
    in[4 + i] = static_cast<int32_t>(right.v[i] << shift) >> 16;
  }
  transform8(in, 1u << (kRowShift - 1), sums);
  uint32_t* const out = pointer<uint32_t>(lane.out + lane.index * lane.pitch);
  int32_t sample[8];
  STOKER_UNROLL for (int i = 0; i < 8; ++i) sample[i] = (static_cast<int32_t>(sums[i]) >> kRowShift) + 128;
  out[0] = saturated_four(sample[0], sample[1], sample[2], sample[3]);
  out[1] = saturated_four(sample[4], sample[5], sample[6], sample[7]);
}

}  // namespace stoker::jpeg::gpu
