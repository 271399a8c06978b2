// SPDX-License-Identifier: Apache-2.0
// Entropy decoding of few files, each of them spread over the device, which one block (CTA) per file would leave idle.
// While some blocks of a row unstuff its data, others build its tables, find the destinations of its coefficients, and
// clear these. Then many blocks decode each subsequence from several candidates for its entry state, one block selects
// the candidate that continues the subsequence before, and many blocks write the coefficients.
#pragma once
#include "device/jpeg_clear.cuh"
#include "device/jpeg_phases.cuh"
#include "device/jpeg_unstuff.cuh"
#include "device/row_blocks.cuh"

namespace stoker::jpeg::gpu {

// Distance of a subsequence's marks, which divide it into equal parts. The limit keeps the number of blocks before a mark
// below 2^16.
STOKER_DEVICE uint32_t spacing_of(uint32_t bits) {
  const uint32_t spacing = (bits / (kMarks + 1) / 32 + 1) * 32;
  return spacing < 16384 ? spacing : 16384;
}

// Memory of a block that prepares.
union PrepareShared {
  UnstuffShared unstuff;
  Tables tables;
};

// Prepare rows: the first block builds the tables, `RowBuffers::finders` blocks find the destinations of blocks, and
// `RowBuffers::unstuffers` blocks unstuff. The blocks of row kNoRow clear the coefficients of all rows, `cleared` times
// 16 bytes.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2)
    stoker_jpeg_prepare(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t coefficients, uint64_t cleared,
                        uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(PrepareShared, memory);
  const RowBlock& work = find_work(starts, count, first);
  if (work.row == kNoRow) {
    const uint64_t begin = uint64_t{work.number} * kClearsPerCta, end = begin + kClearsPerCta;
    return clear(coefficients, begin, end < cleared ? end : cleared);
  }
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  if (work.number == 0) {
    build_tables(row, memory.tables);
    block_barrier();
    copy_tables(memory.tables, *pointer<Tables>(buffers.tables));
  } else if (work.number <= buffers.finders) {
    const uint32_t blocks = row.needed_rows * row.mcu_columns * row.blocks;
    const uint32_t own = (blocks + buffers.finders - 1) / buffers.finders, begin = (work.number - 1) * own;
    find_homes(row, buffers, begin, begin + own < blocks ? begin + own : blocks);
  } else {
    unstuff_part(row, buffers, work.number - 1 - buffers.finders, buffers.unstuffers, memory.unstuff,
                 pointer<uint32_t>(statuses) + buffers.row);
  }
}

// Return a row's subsequences, after the first kernel has written their number. Rows that are spread have one segment.
STOKER_DEVICE Sequence sequence_of(const RowBuffers& buffers, uint32_t bits) {
  const uint32_t* const first = pointer<const uint32_t>(buffers.segment_first);
  return {buffers, pointer<const uint32_t>(buffers.segment_start), first, bits, first[1]};
}

// Decode from `lead` bits before a subsequence to its begin, and return the state there. Codes and the end of a block
// synchronise soon, but a decoder that is in another block of the MCU remains so until it meets a code that the wrong
// table decodes wrongly. Therefore one thread for each block of a period begins with it, and one of the resulting states
// is nearly always right.
STOKER_DEVICE uint16_t state_before(const Tables& tables, const Row& row, const uint32_t* words, const Subsequence& s,
                                    uint32_t lead, uint32_t block) {
  const uint32_t from = s.begin > lead ? s.begin - lead : 0;
  const Subsequence before = {from, s.begin, s.limit, s.segment, false};
  Follower follower(tables, row, words, before, pack(0, from ? block : 0, 0));
  follower.run(s.begin);
  return follower.state(s.begin);
}

// Entry state of a candidate that has not been decoded. No decoder is in this state.
constexpr uint16_t kNotDecoded = 0xFFFF;

// Decode the candidates of each subsequence. A block has one thread for each subsequence and block of the period.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 2)
    stoker_jpeg_guess(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t threads, uint64_t min_bits,
                      uint64_t lead_bits, uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(Tables, tables);
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  if (pointer<const uint32_t>(statuses)[buffers.row] & kFailures) return;
  copy_tables(*pointer<const Tables>(buffers.tables), tables);
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
  const uint32_t together = thread_count() / row.period, candidate = thread_index() % row.period;
  const uint32_t i = work.number * together + thread_index() / row.period;
  if (thread_index() >= together * row.period || i >= sequence.count) return;
  const uint32_t* const words = pointer<const uint32_t>(buffers.words);
  const SubsequenceState states(buffers, spacing_of(bits), candidate);
  states.entry[i] = state_before(tables, row, words, sequence.at(i), static_cast<uint32_t>(lead_bits), candidate);
  follow(tables, row, words, sequence.at(i), states, buffers.states, i, false);
  if (candidate == 0)
    for (uint32_t k = 0; k < kMoreCandidates; ++k) SubsequenceState(buffers, 0, row.period + k).entry[i] = kNotDecoded;
}

// Map from the candidates of a subsequence to those of the next one, four bits for each.
using Map = uint64_t;
constexpr uint32_t kMaxCandidates = kMaxMcuBlocks + kMoreCandidates;
static_assert(4 * kMaxCandidates <= 64);
constexpr uint32_t kSlotShift = 28;  // of a candidate's number above that of its subsequence, in lists
constexpr Map kIdentity = 0xFEDCBA9876543210u;
STOKER_DEVICE uint32_t image_of(Map map, uint32_t candidate) {
  return static_cast<uint32_t>(map >> (4 * candidate)) & 15;
}
STOKER_DEVICE Map composed(Map first, Map second, uint32_t count) {
  Map map = 0;
  for (uint32_t c = 0; c < count; ++c) map |= static_cast<Map>(image_of(second, image_of(first, c))) << (4 * c);
  return map;
}
STOKER_DEVICE Map shuffle_map_up(Map map, uint32_t distance) {
  const uint32_t low = shuffle_up(static_cast<uint32_t>(map), distance);
  return low | static_cast<Map>(shuffle_up(static_cast<uint32_t>(map >> 32), distance)) << 32;
}

// How the candidates of subsequence i continue those of the one before.
struct Link {
  Map map = kIdentity;
  uint32_t unmatched = 0;  // bits: candidates of the one before in whose exit state no candidate begins
};

STOKER_DEVICE Link link_of(const RowBuffers& buffers, uint32_t count, uint32_t i) {
  uint16_t entries[kMaxCandidates];
  STOKER_UNROLL for (uint32_t k = 0; k < kMaxCandidates; ++k) entries[k] =
      k < count ? SubsequenceState(buffers, 0, k).entry[i] : kNotDecoded;
  Link link = {0, 0};
  uint32_t matched = 0, any = 0;
  for (uint32_t c = 0; c < count; ++c) {
    const SubsequenceState before(buffers, 0, c);
    if (before.entry[i - 1] == kNotDecoded) continue;
    const uint16_t exit = before.exit[i - 1];
    uint32_t to = kMaxCandidates;
    STOKER_UNROLL for (uint32_t k = kMaxCandidates; k-- > 0;) to = entries[k] == exit ? k : to;
    if (to == kMaxCandidates) {
      link.unmatched |= 1u << c;
      continue;
    }
    link.map |= static_cast<Map>(to) << (4 * c);
    any = matched ? any : to;
    matched |= 1u << c;
  }
  // Candidates become equal with time, so that another one's continuation is the best guess.
  for (uint32_t c = 0; c < count; ++c)
    if (!(matched >> c & 1)) link.map |= static_cast<Map>(any) << (4 * c);
  return link;
}

struct SynchroniseShared {
  EntropyShared entropy;
  Map maps[kMaxWarps];
  uint32_t selected;  // candidate of the last subsequence so far
  uint32_t others;    // candidates to be decoded that continue no selected one
};

// Return the slot of subsequence i for one more candidate that begins in `state`, or `count` if there is none.
STOKER_DEVICE uint32_t free_slot(const RowBuffers& buffers, uint32_t first, uint32_t count, uint32_t i,
                                 uint16_t state) {
  for (uint32_t k = first; k < count; ++k) {
    uint16_t& entry = SubsequenceState(buffers, 0, k).entry[i];
    if (entry == state) return count;
    if (entry != kNotDecoded) continue;
    entry = state;
    return k;
  }
  return count;
}

// Add candidates of subsequence i that begin where those of the one before end: where the selected one ends, `before`, and
// where others do, because a later round may select them.
STOKER_DEVICE void continue_from(SynchroniseShared& shared, const RowBuffers& buffers, uint32_t period,
                                 uint32_t unmatched, uint32_t before, uint32_t i, uint32_t round) {
  const uint32_t count = period + kMoreCandidates;
  if (unmatched >> before & 1) {
    const uint16_t state = SubsequenceState(buffers, 0, before).exit[i - 1];
    uint32_t slot = free_slot(buffers, period, count, i, state);
    if (slot == count) {  // the candidates in all slots begin in other states
      slot = period + round % kMoreCandidates;
      SubsequenceState(buffers, 0, slot).entry[i] = state;
    }
    SubsequenceState(buffers).list[atomic_add(&shared.entropy.dirty, 1)] = i | slot << kSlotShift;
  }
  for (uint32_t rest = unmatched & ~(1u << before); rest; rest &= rest - 1) {
    const uint32_t from = bits_set((rest & (0u - rest)) - 1);
    const uint32_t slot = free_slot(buffers, period, count, i, SubsequenceState(buffers, 0, from).exit[i - 1]);
    if (slot == count) continue;
    const uint32_t at = atomic_add(&shared.others, 1);
    if (at < buffers.states) SubsequenceState(buffers, 0, 2).list[at] = i | slot << kSlotShift;
    else SubsequenceState(buffers, 0, slot).entry[i] = kNotDecoded;
  }
}

// Select a candidate of each subsequence, so that each begins where the one before ends. Where none does, decode one
// more from that state, and also from the ends of other candidates, because a later round may select them. Return
// whether that succeeded in `max_rounds` rounds. Round k makes at least the first k selections final, and nearly all are
// right immediately.
STOKER_DEVICE bool select_candidates(SynchroniseShared& shared, const Row& row, const Sequence& sequence,
                                     uint32_t spacing, uint32_t max_rounds) {
  const RowBuffers& buffers = sequence.buffers;
  const uint32_t count = row.period + kMoreCandidates, lane = thread_index() % kWarp, warp = thread_index() / kWarp;
  const SubsequenceState first(buffers, spacing), second(buffers, spacing, 1);
  const uint32_t* const others = SubsequenceState(buffers, spacing, 2).list;
  for (uint32_t round = 0; round <= max_rounds; ++round) {
    if (thread_index() == 0) shared.entropy.dirty = shared.others = shared.selected = 0;
    for (uint32_t base = 0; base < sequence.count; base += thread_count()) {
      const uint32_t i = base + thread_index();
      Link link;
      if (i > 0 && i < sequence.count) link = link_of(buffers, count, i);
      Map sum = link.map;
      for (uint32_t distance = 1; distance < kWarp; distance *= 2) {
        const Map other = shuffle_map_up(sum, distance);
        if (lane >= distance) sum = composed(other, sum, count);
      }
      if (lane == kWarp - 1) shared.maps[warp] = sum;
      block_barrier();
      uint32_t before = shared.selected;
      for (uint32_t w = 0; w < warp; ++w) before = image_of(shared.maps[w], before);
      const uint32_t own = image_of(sum, before);
      const Map of_others = shuffle_map_up(sum, 1);
      if (lane > 0) before = image_of(of_others, before);
      block_barrier();
      if (thread_index() == thread_count() - 1) shared.selected = own;
      if (i < sequence.count) {
        second.list[i] = own;
        continue_from(shared, buffers, row.period, link.unmatched, before, i, round);
      }
      block_barrier();
    }
    if (!shared.entropy.dirty) break;
    if (round == max_rounds) return false;
    const uint32_t* const words = pointer<const uint32_t>(buffers.words);
    const uint32_t broken = shared.entropy.dirty;
    const uint32_t all = broken + (shared.others < buffers.states ? shared.others : buffers.states);
    for (uint32_t k = thread_index(); k < all; k += thread_count()) {
      const uint32_t one = k < broken ? first.list[k] : others[k - broken], i = one & ((1u << kSlotShift) - 1);
      const SubsequenceState states(buffers, spacing, one >> kSlotShift);
      follow(shared.entropy.tables, row, words, sequence.at(i), states, buffers.states, i, false);
    }
    block_barrier();
  }
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    const SubsequenceState selected(buffers, spacing, second.list[i]);
    first.entry[i] = selected.entry[i];
    first.blocks[i] = selected.blocks[i];
    for (uint32_t k = 0; k < kMarks; ++k) first.marks[k * buffers.states + i] = selected.marks[k * buffers.states + i];
  }
  block_barrier();
  return true;
}

// Select the candidates of a row, and count the blocks before each subsequence.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(1024, 1)
    stoker_jpeg_synchronise(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t max_rounds,
                            uint64_t starts, uint64_t count, uint64_t first) {
  STOKER_SHARED(SynchroniseShared, shared);
  const RowBlock& work = find_work(starts, count, first);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[work.row];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + buffers.row;
  if (thread_index() == 0) shared.entropy.failed = *status & kFailures;
  block_barrier();
  if (shared.entropy.failed) return;
  copy_tables(*pointer<const Tables>(buffers.tables), shared.entropy.tables);
  const uint32_t bits = pointer<const Progress>(buffers.progress)->bits;
  const Sequence sequence = sequence_of(buffers, bits);
  const SubsequenceState states(buffers, spacing_of(bits));
  const bool in_step = select_candidates(shared, row, sequence, spacing_of(bits), affordable_rounds(max_rounds, bits));
  const uint32_t needed_mcus = row.needed_rows * row.mcu_columns;
  const bool complete = in_step && count_blocks(shared.entropy, row, sequence, states, needed_mcus);
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
