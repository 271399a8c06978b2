// SPDX-License-Identifier: Apache-2.0
// Phases of decoding in which the threads of a row cooperate: cut the data, synchronise subsequences, count blocks,
// write coefficients, and sum DC differences.
#pragma once
#include "device/block_scan.cuh"
#include "device/jpeg_subsequences.cuh"

namespace stoker::jpeg::gpu {

// Compute the destination of the coefficients of each block of the scan from `begin` to `end`.
STOKER_DEVICE void find_homes(const Row& row, const RowBuffers& buffers, uint32_t begin, uint32_t end) {
  uint32_t* const homes = pointer<uint32_t>(buffers.homes);
  for (uint32_t i = begin + thread_index(); i < end; i += thread_count()) {
    const uint32_t mcu = i / row.blocks, block = i % row.blocks, c = row.component[block];
    const Plane& plane = row.plane[c];
    const uint32_t inside = block - plane.first_block;
    const uint32_t x = mcu % row.mcu_columns * plane.h + inside % plane.h - plane.first_column;
    const uint32_t y = mcu / row.mcu_columns * plane.v + inside / plane.h - plane.first_row;
    homes[i] = x < plane.columns && y < plane.rows ? buffers.first_home[c] + y * plane.columns + x : kNoHome;
  }
}

// Cut the data into subsequences and return their number.
STOKER_DEVICE uint32_t cut(const RowBuffers& buffers, uint32_t bits, uint32_t* sums) {
  const uint32_t* const start = pointer<const uint32_t>(buffers.segment_start);
  uint32_t* const first = pointer<uint32_t>(buffers.segment_first);
  uint32_t done = 0;
  for (uint32_t base = 0; base < buffers.segments; base += thread_count()) {
    const uint32_t i = base + thread_index();
    const uint32_t size = i < buffers.segments ? 8 * (start[i + 1] - start[i]) : 0;
    const uint32_t own = i >= buffers.segments ? 0 : size ? (size + bits - 1) / bits : 1;
    uint32_t total = 0;
    const uint32_t sum = inclusive_sum(own, sums, total);
    if (i < buffers.segments) first[i] = done + sum - own;
    done += total;
  }
  if (thread_index() == 0) first[buffers.segments] = done;
  block_barrier();
  return done;
}

// A file that is crafted never to synchronise needs a round per subsequence, with one thread working. The budget of all
// rounds is this many bits, about a second; every file gets at least kLeastRounds.
constexpr uint32_t kRoundBits = 1u << 24, kLeastRounds = 4;

// Return the greatest number of rounds for subsequences of `bits` bits.
STOKER_DEVICE uint32_t affordable_rounds(uint64_t max_rounds, uint32_t bits) {
  const uint32_t affordable = kLeastRounds + kRoundBits / bits;
  return max_rounds < affordable ? static_cast<uint32_t>(max_rounds) : affordable;
}

// Decode again the subsequences whose entry state differs from the state in which their predecessor ended, until there
// are none.
STOKER_DEVICE bool synchronise(EntropyShared& shared, const Row& row, const Sequence& sequence,
                               const SubsequenceState& states, uint32_t max_rounds) {
  const uint32_t* const words = pointer<const uint32_t>(sequence.buffers.words);
  for (uint32_t round = 0; round <= max_rounds; ++round) {
    if (thread_index() == 0) shared.dirty = 0;
    block_barrier();
    for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
      if (sequence.at(i).head || states.exit[i - 1] == states.entry[i]) continue;
      states.entry[i] = states.exit[i - 1];
      states.list[atomic_add(&shared.dirty, 1)] = i;
    }
    block_barrier();
    const uint32_t dirty = shared.dirty;
    if (dirty == 0) return true;
    if (round == max_rounds) break;
    for (uint32_t k = thread_index(); k < dirty; k += thread_count()) {
      const uint32_t i = states.list[k];
      follow(shared.tables, row, words, sequence.at(i), states, sequence.buffers.states, i, true);
    }
    block_barrier();
  }
  return false;
}

// Compute the running sums of the block counts, then check that each segment has the right number of blocks.
STOKER_DEVICE bool count_blocks(EntropyShared& shared, const Row& row, const Sequence& sequence,
                                const SubsequenceState& states, uint32_t needed_mcus) {
  if (thread_index() == 0) shared.failed = 0;
  uint32_t done = 0;
  for (uint32_t base = 0; base < sequence.count; base += thread_count()) {
    const uint32_t i = base + thread_index();
    uint32_t total = 0;
    const uint32_t sum = inclusive_sum(i < sequence.count ? states.blocks[i] : 0, shared.sums, total);
    if (i < sequence.count) states.blocks[i] = done + sum;
    done += total;
  }
  block_barrier();
  const uint32_t interval = sequence.buffers.segments > 1 ? row.restart_interval : needed_mcus;
  for (uint32_t k = thread_index(); k < sequence.buffers.segments; k += thread_count()) {
    if (k * interval >= needed_mcus) break;
    const uint32_t left = needed_mcus - k * interval;
    const uint32_t head = sequence.first[k], end = sequence.first[k + 1];
    const uint32_t blocks = states.blocks[end - 1] - (head ? states.blocks[head - 1] : 0);
    if (blocks < (left < interval ? left : interval) * row.blocks) atomic_or(&shared.failed, 1);
  }
  block_barrier();
  return shared.failed == 0;
}

// Range of a subsequence's blocks in the scan, up to the end of the needed blocks of its segment.
struct Span {
  uint32_t begin, end;
};

STOKER_DEVICE Span span_of(const Row& row, const Sequence& sequence, const SubsequenceState& states,
                           uint32_t needed_mcus, const Subsequence& s, uint32_t i) {
  const uint32_t interval = sequence.buffers.segments > 1 ? row.restart_interval : needed_mcus;
  const uint32_t from = s.segment * interval;
  if (from >= needed_mcus) return {};
  const uint32_t head = sequence.first[s.segment];
  const uint32_t before = (i ? states.blocks[i - 1] : 0) - (head ? states.blocks[head - 1] : 0);
  const uint32_t to = needed_mcus - from < interval ? needed_mcus : from + interval;
  const uint32_t begin = from * row.blocks + before, end = to * row.blocks;
  return {begin < end ? begin : end, end};
}

STOKER_DEVICE void write_all(const Tables& tables, const Row& row, const Sequence& sequence,
                             const SubsequenceState& states, uint32_t needed_mcus) {
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    const Subsequence s = sequence.at(i);
    const Span span = span_of(row, sequence, states, needed_mcus, s, i);
    if (span.begin < span.end) write(tables, row, sequence.buffers, s, states.entry[i], span.begin, span.end);
  }
}

// Write a piece of a subsequence and record its begin in the row's entry, and the begin of the next piece as well,
// because there are no registers to hold the state.
STOKER_CALLED void write_piece(const Tables& tables, const Row& row, const RowBuffers& buffers, uint32_t bits,
                               uint32_t i, uint32_t k) {
  const Sequence sequence = {buffers, pointer<const uint32_t>(buffers.segment_start),
                             pointer<const uint32_t>(buffers.segment_first), bits, 0};
  const SubsequenceState states(buffers);
  const Subsequence s = sequence.at(i), piece = s.piece(k, row.pieces, bits);
  if (k > 0 && piece.begin >= s.limit) return;
  const Span span = span_of(row, sequence, states, row.mcu_rows * row.mcu_columns, s, i);
  PieceStart* const at = pointer<IndexEntry>(row.index)->at + i * row.pieces + k;
  if (k == 0) *at = {span.begin, {}, states.entry[i]};
  End reached = {false, at->state, at->blocks};
  if (at->blocks < span.end) reached = write(tables, row, buffers, piece, at->state, at->blocks, span.end);
  if (k + 1 < row.pieces) at[1] = {reached.blocks, {}, reached.state};
}

// Write a whole picture in pieces, for an entry.
STOKER_DEVICE void write_pieces(const Tables& tables, const Row& row, const RowBuffers& buffers, uint32_t bits,
                                uint32_t count) {
  for (uint32_t i = thread_index(); i < count; i += thread_count())
    for (uint32_t k = 0; k < row.pieces; ++k) write_piece(tables, row, buffers, bits, i, k);
}

// Replace DC differences by their running sums, modulo 2^16. Readers of the sums subtract the sum at the begin of a
// segment. `sums` is shared memory for kMaxWarps numbers.
STOKER_DEVICE void sum_differences(uint32_t* sums, const Row& row, int16_t* dc, uint32_t mcus) {
  uint32_t done[kMaxPlanes] = {};
  // Planes of an MCU's blocks, four bits for each, because loads of the row would wait for the stores.
  uint64_t planes = 0;
  for (uint32_t b = 0; b < row.blocks; ++b) planes |= static_cast<uint64_t>(row.component[b]) << (4 * b);
  for (uint32_t base = 0; base < mcus; base += thread_count()) {
    const uint32_t m = base + thread_index(), blocks = m < mcus ? row.blocks : 0;
    int16_t* const own = dc + m * row.blocks;
    uint32_t sum[kMaxPlanes] = {};
    for (uint32_t b = 0; b < blocks; ++b)
      STOKER_UNROLL for (uint32_t c = 0; c < kMaxPlanes; ++c) sum[c] +=
          (planes >> (4 * b) & 15) == c ? static_cast<uint32_t>(own[b]) : 0;
    STOKER_UNROLL for (uint32_t c = 0; c < kMaxPlanes; ++c) {
      if (c >= row.components) break;
      uint32_t total = 0;
      sum[c] = done[c] + inclusive_sum(sum[c], sums, total) - sum[c];
      done[c] += total;
    }
    for (uint32_t b = 0; b < blocks; ++b) {
      const uint32_t difference = static_cast<uint32_t>(own[b]);
      STOKER_UNROLL for (uint32_t c = 0; c < kMaxPlanes; ++c) {
        if ((planes >> (4 * b) & 15) != c) continue;
        sum[c] += difference;
        own[b] = static_cast<int16_t>(sum[c]);
      }
    }
  }
}

}  // namespace stoker::jpeg::gpu
