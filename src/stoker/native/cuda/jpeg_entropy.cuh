// SPDX-License-Identifier: Apache-2.0
// Huffman decoding by many threads. One CTA per row cuts its data into subsequences; each is decoded from a guessed
// state, then again from where the one before it really ended, until nothing changes. Codes synchronise by themselves
// after some hundred bits, so few rounds are needed; and the first k subsequences are right after round k whatever the
// data are, so what comes out is exact. Then block counts give every subsequence its place, and coefficients are written.
#pragma once
#include "jpeg_known.cuh"

namespace stoker::jpeg::gpu {

// A file made so that it never synchronises costs a round per subsequence, one thread at work. All rounds together may
// go over so many bits, about a second; a file of any size has some rounds.
constexpr uint32_t kRoundBits = 1u << 24, kLeastRounds = 4;

// Decodes a file that was never decoded before.
STOKER_DEVICE void decode_unknown(EntropyShared& shared, const Row& row, const Place& place, uint32_t* status,
                                  Outline& outline, uint32_t min_bits, uint32_t max_rounds) {
  const uint32_t* const words = pointer<const uint32_t>(place.words);
  const uint32_t* const start = pointer<const uint32_t>(place.segment_start);
  const uint32_t fair = (8 * start[place.segments] / thread_count() / 32 + 1) * 32;
  uint32_t bits = fair > min_bits ? fair : min_bits;
  if (row.index && !row.known && place.segments > 1) {  // each segment may need one more than its share
    const uint32_t room = kIndexSubsequences - smaller(place.segments, kIndexSegments);
    const uint32_t kept = (8 * start[place.segments] / room / 32 + 1) * 32;
    bits = bits > kept ? bits : kept;
  }
  const uint32_t unit = 32 * (row.index && !row.known ? row.pieces : 1);
  bits = (bits + unit - 1) / unit * unit;
  const Sequence sequence = {place, start, pointer<const uint32_t>(place.segment_first), bits,
                             cut(place, bits, shared.sums)};
  const SubsequenceState states(place);
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    states.entry[i] = 0;
    follow(shared, row, words, sequence.at(i), states, place.states, i, false);
  }
  block_barrier();
  const uint32_t affordable = kLeastRounds + kRoundBits / bits;
  const bool in_step = synchronise(shared, row, sequence, states, max_rounds < affordable ? max_rounds : affordable);
  const uint32_t needed_mcus = row.needed_rows * row.mcu_columns;
  const bool complete = in_step && count_blocks(shared, row, sequence, states, needed_mcus);
  if (!complete) {
    if (thread_index() == 0) atomic_or(status, in_step ? kTruncated : kSlow);
    return;
  }
  // Fewer subsequences were asked for than an entry can have; without one, the host drops it.
  const bool kept = row.index && !row.known && sequence.count <= kIndexSubsequences;
  if (kept) write_pieces(shared, row, place, bits, sequence.count);
  else write_all(shared, row, sequence, states, needed_mcus);
  block_barrier();
  sum_differences(shared, row, pointer<int16_t>(place.dc), needed_mcus);
  if (kept) note(shared, row, place, sequence, outline);
}

// `items`: which CTA of a row this is; files that are not known have one.
STOKER_KERNEL STOKER_LAUNCH_BOUNDS(1024, 1)
    stoker_jpeg_entropy(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t items, uint64_t min_bits,
                        uint64_t max_rounds) {
  STOKER_SHARED(EntropyShared, shared);
  const Item item = pointer<const Item>(items)[block_index()];
  const Place& place = pointer<const Place>(places)[item.place_and_plane];
  const Row& row = pointer<const Row>(rows)[place.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + place.row;
  if (thread_index() == 0) shared.failed = *status & kFailures;  // the row's other CTAs may be about to change it
  block_barrier();
  if (shared.failed) return;
  const bool known = row.index && row.known;
  const IndexEntry* const entry = pointer<const IndexEntry>(row.index);
  Checksum part = {};  // on its way while there is other work
  if (known) part = part_of_seal(*entry, row.pieces, thread_index(), thread_count(), row.seed);
  build_tables(row, shared);
  block_barrier();
  if (known) {
    if (is_of(shared, *entry, part, row, place)) {
      uint32_t turn = item.first;
      do {  // where things are is found out anew: there are no registers to keep it in
        block_barrier();
        if (thread_index() == 0) shared.next = 0;
        const Place& own = pointer<const Place>(places)[pointer<const Item>(items)[block_index()].place_and_plane];
        decode_known(shared, pointer<const Row>(rows)[own.row], own, turn, pointer<uint32_t>(statuses) + own.row);
        block_barrier();
        turn = shared.next;
      } while (turn);
      return;
    }
    if (thread_index() == 0) atomic_or(status, row.part_end ? kStrayed : kNotRead);
    if (row.part_end || item.first > 0) return;
  }
  find_homes(row, place, 0, row.needed_rows * row.mcu_columns * row.blocks);
  block_barrier();
  Outline& outline = *pointer<Outline>(statuses + row.outline);
  decode_unknown(shared, row, place, status, outline, static_cast<uint32_t>(min_bits), static_cast<uint32_t>(max_rounds));
}

}  // namespace stoker::jpeg::gpu
