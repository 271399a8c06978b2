// SPDX-License-Identifier: Apache-2.0
// Entropy decoding of few files, each of them spread over the device, which one block (CTA) per file would leave idle.
// While one block of a row unstuffs its data, another one prepares its tables (jpeg_unstuff.cuh). Then many blocks guess
// the subsequences' entry states, one block synchronises them, and many blocks write the coefficients.
#pragma once
#include "device/jpeg_phases.cuh"
#include "device/row_blocks.cuh"

namespace stoker::jpeg::gpu {

// Distance of a subsequence's marks, which divide it into equal parts. The limit keeps the number of blocks before a mark
// below 2^16.
STOKER_DEVICE uint32_t spacing_of(uint32_t bits) {
  const uint32_t spacing = (bits / (kMarks + 1) / 32 + 1) * 32;
  return spacing < 16384 ? spacing : 16384;
}

// Return a row's subsequences, after the first kernel has written their number. Rows that are spread have one segment.
STOKER_DEVICE Sequence sequence_of(const RowBuffers& buffers, uint32_t bits) {
  const uint32_t* const first = pointer<const uint32_t>(buffers.segment_first);
  return {buffers, pointer<const uint32_t>(buffers.segment_start), first, bits, first[1]};
}

constexpr uint32_t kGuessThreads = 256;

struct GuessShared {
  Tables tables;
  uint16_t candidate[kGuessThreads];
};

// Return the most frequent of the states, the first of several.
STOKER_DEVICE uint16_t elect(const uint16_t* states, uint32_t count) {
  uint32_t best = 0, votes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t own = 0;
    for (uint32_t j = 0; j < count; ++j) own += states[j] == states[i];
    if (own > votes) best = i, votes = own;
  }
  return states[best];
}

// Decode from `lead` bits before a subsequence to its begin, and return the state there. Codes and the end of a block
// synchronise soon, but a decoder that is in another block of the MCU remains so until it meets a code that the wrong
// table decodes wrongly. Therefore one thread for each block of a period begins with it.
STOKER_DEVICE uint16_t state_before(const Tables& tables, const Row& row, const uint32_t* words, const Subsequence& s,
                                    uint32_t lead, uint32_t block) {
  const uint32_t from = s.begin > lead ? s.begin - lead : 0;
  const Subsequence before = {from, s.begin, s.limit, s.segment, false};
  Follower follower(tables, row, words, before, pack(0, from ? block : 0, 0));
  follower.run(s.begin);
  return follower.state(s.begin);
}

// Elect the entry state of each subsequence, and decode the subsequence. A block has one thread for each
// subsequence and block of the period.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 2)
    stoker_jpeg_guess(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t threads, uint64_t min_bits,
                      uint64_t lead_bits, uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(GuessShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  if (pointer<const uint32_t>(statuses)[buffers.row] & kFailures) return;
  copy_tables(*pointer<const Tables>(buffers.tables), shared.tables);
  const uint32_t bytes = pointer<const uint32_t>(buffers.segment_start)[1];
  const uint32_t fair = (8 * bytes / static_cast<uint32_t>(threads) / 32 + 1) * 32;
  const uint32_t bits = fair > min_bits ? fair : static_cast<uint32_t>(min_bits);
  if (thread_index() == 0) {  // every block writes the same
    uint32_t* const number = pointer<uint32_t>(buffers.segment_first);
    number[0] = 0;
    number[1] = bytes ? (8 * bytes + bits - 1) / bits : 1;
    *pointer<Progress>(buffers.progress) = {bits, buffers.writers};
  }
  block_barrier();
  const Sequence sequence = sequence_of(buffers, bits);
  const uint32_t* const words = pointer<const uint32_t>(buffers.words);
  const uint32_t together = thread_count() / row.period, begin = work.number * together;
  const uint32_t candidate = begin + thread_index() / row.period;
  if (thread_index() < together * row.period && candidate < sequence.count)
    shared.candidate[thread_index()] = state_before(shared.tables, row, words, sequence.at(candidate),
                                                    static_cast<uint32_t>(lead_bits), thread_index() % row.period);
  block_barrier();
  const uint32_t i = begin + thread_index();
  if (thread_index() >= together || i >= sequence.count) return;
  const SubsequenceState states(buffers, spacing_of(bits));
  states.entry[i] = elect(shared.candidate + thread_index() * row.period, row.period);
  follow(shared.tables, row, words, sequence.at(i), states, buffers.states, i, false);
}

// Decode subsequences again until all begin where their predecessors end.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(1024, 1)
    stoker_jpeg_synchronise(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t max_rounds,
                            uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(EntropyShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + buffers.row;
  if (thread_index() == 0) shared.failed = *status & kFailures;
  block_barrier();
  if (shared.failed) return;
  copy_tables(*pointer<const Tables>(buffers.tables), shared.tables);
  const uint32_t bits = pointer<const Progress>(buffers.progress)->bits;
  const Sequence sequence = sequence_of(buffers, bits);
  const SubsequenceState states(buffers, spacing_of(bits));
  const bool in_step = synchronise(shared, row, sequence, states, affordable_rounds(max_rounds, bits));
  const uint32_t needed_mcus = row.needed_rows * row.mcu_columns;
  const bool complete = in_step && count_blocks(shared, row, sequence, states, needed_mcus);
  if (!complete && thread_index() == 0) atomic_or(status, in_step ? kTruncated : kSlow);
}

// Write the part of a subsequence before its mark k, or after the last mark. States at marks are final after
// synchronisation, so that the parts are independent.
STOKER_DEVICE void write_part(const Tables& tables, const Row& row, const Sequence& sequence,
                              const SubsequenceState& states, uint32_t needed_mcus, uint32_t i, uint32_t k) {
  Subsequence part = sequence.at(i);
  const Span span = span_of(row, sequence, states, needed_mcus, part, i);
  const uint32_t begin = part.begin + (k ? states.distance(k - 1) : 0);
  if (begin >= part.end || span.begin == span.end) return;
  const uint32_t mark = k ? states.marks[(k - 1) * sequence.buffers.states + i] : states.entry[i];
  if (k < kMarks && part.begin + states.distance(k) < part.end) part.end = part.begin + states.distance(k);
  part.begin = begin;
  const uint32_t index = span.begin + (mark >> 16);
  if (index < span.end) write(tables, row, sequence.buffers, part, static_cast<uint16_t>(mark), index, span.end);
}

// Write the coefficients. The row's last block to finish sums DC differences.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2) stoker_jpeg_write(uint64_t rows, uint64_t row_buffers, uint64_t statuses,
                                                             uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(EntropyShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  if (pointer<const uint32_t>(statuses)[buffers.row] & kFailures) return;
  Progress& progress = *pointer<Progress>(buffers.progress);
  const Sequence sequence = sequence_of(buffers, progress.bits);
  const uint32_t needed_mcus = row.needed_rows * row.mcu_columns;
  const uint32_t begin = work.number * thread_count(), at = begin + thread_index();
  if (begin < sequence.count * (kMarks + 1)) {
    copy_tables(*pointer<const Tables>(buffers.tables), shared.tables);
    block_barrier();
    if (at < sequence.count * (kMarks + 1))
      write_part(shared.tables, row, sequence, SubsequenceState(buffers, spacing_of(progress.bits)), needed_mcus,
                 at / (kMarks + 1), at % (kMarks + 1));
    device_fence();
  }
  block_barrier();
  if (thread_index() == 0) shared.next = atomic_add(&progress.left, 0xFFFFFFFFu);
  block_barrier();
  if (shared.next != 1) return;
  device_fence();
  sum_differences(shared.sums, row, pointer<int16_t>(buffers.dc), needed_mcus);
}

}  // namespace stoker::jpeg::gpu
