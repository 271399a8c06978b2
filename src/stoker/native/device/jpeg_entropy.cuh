// SPDX-License-Identifier: Apache-2.0
// Parallel Huffman decoding. One thread block (CTA) per row cuts the data into subsequences. Each is decoded from a
// guessed state, then again from the state in which its predecessor ended, until nothing changes. Huffman codes
// synchronise by themselves after a few hundred bits, so few rounds are needed. The first k subsequences are correct
// after round k for any data, so the final result is exact. Block counts then give each subsequence its position in the
// scan, and the coefficients are written.
#pragma once
#include "device/jpeg_known.cuh"
#include "device/row_blocks.cuh"

namespace stoker::jpeg::gpu {

// Decode a file that has no index entry.
STOKER_DEVICE void decode_unknown(EntropyShared& shared, const Row& row, const RowBuffers& buffers, uint32_t* status,
                                  Outline& outline, uint32_t min_bits, uint32_t max_rounds) {
  const uint32_t* const words = pointer<const uint32_t>(buffers.words);
  const uint32_t* const start = pointer<const uint32_t>(buffers.segment_start);
  const uint32_t fair = (8 * start[buffers.segments] / thread_count() / 32 + 1) * 32;
  uint32_t bits = fair > min_bits ? fair : min_bits;
  if (row.index && !row.known && buffers.segments > 1) {  // each segment may need one more subsequence than its share
    const uint32_t room = kIndexSubsequences - smaller(buffers.segments, kIndexSegments);
    const uint32_t kept = (8 * start[buffers.segments] / room / 32 + 1) * 32;
    bits = bits > kept ? bits : kept;
  }
  const uint32_t unit = 32 * (row.index && !row.known ? row.pieces : 1);
  bits = (bits + unit - 1) / unit * unit;
  const Sequence sequence = {buffers, start, pointer<const uint32_t>(buffers.segment_first), bits,
                             cut(buffers, bits, shared.sums)};
  const SubsequenceState states(buffers);
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    states.entry[i] = 0;
    follow(shared.tables, row, words, sequence.at(i), states, buffers.states, i, false);
  }
  block_barrier();
  const bool in_step = synchronise(shared, row, sequence, states, affordable_rounds(max_rounds, bits));
  const uint32_t needed_mcus = row.needed_rows * row.mcu_columns;
  const bool complete = in_step && count_blocks(shared, row, sequence, states, needed_mcus);
  if (!complete) {
    if (thread_index() == 0) atomic_or(status, in_step ? kTruncated : kSlow);
    return;
  }
  // `bits` was chosen so that there are at most as many subsequences as an entry holds. If there are more nevertheless,
  // no entry is written, and the host drops it.
  const bool kept = row.index && !row.known && sequence.count <= kIndexSubsequences;
  if (kept) write_pieces(shared.tables, row, buffers, bits, sequence.count);
  else write_all(shared.tables, row, sequence, states, needed_mcus);
  block_barrier();
  sum_differences(shared.sums, row, pointer<int16_t>(buffers.dc), needed_mcus);
  if (kept) note(shared, row, buffers, sequence, outline);
}

// A row of a known file has as many blocks (CTAs) as it has shares; a file without an entry has one.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(1024, 1)
    stoker_jpeg_entropy(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t min_bits, uint64_t max_rounds,
                        uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(EntropyShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + buffers.row;
  if (thread_index() == 0) shared.failed = *status & kFailures;  // read before the row's other blocks may change it
  block_barrier();
  if (shared.failed) return;
  const bool known = row.index && row.known;
  const IndexEntry* const entry = pointer<const IndexEntry>(row.index);
  Checksum part = {};  // loaded early, so that other work hides the latency
  if (known) part = part_of_seal(*entry, row.pieces, thread_index(), thread_count(), row.seed);
  build_tables(row, shared.tables);
  block_barrier();
  if (known) {
    if (is_of(shared, *entry, part, row, buffers)) {
      uint32_t turn = work.number;
      do {  // the row's data are looked up again in each iteration: there are no registers to hold them
        block_barrier();
        if (thread_index() == 0) shared.next = 0;
        const RowBuffers& own = pointer<const RowBuffers>(row_buffers)[work.row];
        decode_known(shared, pointer<const Row>(rows)[own.row], own, turn, pointer<uint32_t>(statuses) + own.row);
        block_barrier();
        turn = shared.next;
      } while (turn);
      return;
    }
    if (thread_index() == 0) atomic_or(status, row.part_end ? kStrayed : kNotRead);
    if (row.part_end || work.number > 0) return;
  }
  find_homes(row, buffers, 0, row.needed_rows * row.mcu_columns * row.blocks);
  block_barrier();
  Outline& outline = *pointer<Outline>(statuses + row.outline);
  decode_unknown(shared, row, buffers, status, outline, static_cast<uint32_t>(min_bits),
                 static_cast<uint32_t>(max_rounds));
}

}  // namespace stoker::jpeg::gpu
