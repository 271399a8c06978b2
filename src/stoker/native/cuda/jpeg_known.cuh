// SPDX-License-Identifier: Apache-2.0
// Files that come again: what is noted of one when it is decoded, and how it is decoded with what was noted.
#pragma once
#include "jpeg_phases.cuh"

namespace stoker::jpeg::gpu {

STOKER_DEVICE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// How each subsequence begins, after all blocks were decoded and the running sums of their DC differences are known.
STOKER_DEVICE void note_beginnings(const Row& row, const Place& place, const Sequence& sequence,
                                   const SubsequenceState& states, IndexEntry& entry) {
  const int16_t* const dc = pointer<const int16_t>(place.dc);
  const uint32_t mcus = row.mcu_rows * row.mcu_columns, interval = place.segments > 1 ? row.restart_interval : mcus;
  for (uint32_t i = thread_index(); i < kIndexSubsequences; i += thread_count()) {
    if (i >= sequence.count) {
      entry.at[i] = {};
      continue;
    }
    const uint32_t segment = sequence.at(i).segment, head = sequence.first[segment], from = segment * interval;
    const uint32_t before = (i ? states.blocks[i - 1] : 0) - (head ? states.blocks[head - 1] : 0);
    Beginning& at = entry.at[i];
    at = {smaller(from * row.blocks + before, smaller(mcus, from + interval) * row.blocks), {}, states.entry[i]};
    uint32_t missing = (1u << row.components) - 1;
    for (uint32_t b = smaller(at.blocks + (state_position(at.state) ? 1 : 0), mcus * row.blocks); b-- > 0 && missing;) {
      const uint32_t c = row.component[b % row.blocks];
      if (missing >> c & 1) at.dc[c] = dc[b];
      missing &= ~(1u << c);
    }
  }
}

STOKER_DEVICE uint32_t chunk_words(uint32_t bits) { return kChunkSubsequences * (bits / 32); }

// The checksums of a file's chunks. Several threads share one.
STOKER_DEVICE void note_checksums(const Row& row, const Place& place, const Outline& outline, uint32_t bytes,
                                  IndexEntry& entry) {
  const uint32_t* const words = pointer<const uint32_t>(place.words);
  const uint32_t together = thread_count() > kIndexChunks ? thread_count() / kIndexChunks : 1;
  const uint32_t each = chunk_words(outline.bits), all = (bytes + 3) / 4;
  for (uint32_t c = thread_index() / together; c < outline.chunks; c += thread_count() / together) {
    Checksum sum = {};
    const uint32_t end = smaller((c + 1) * each, all);
    for (uint32_t w = c * each + thread_index() % together; w < end; w += together) add_to(sum, words[w], w, row.seed);
    atomic_add(&entry.chunk[c].low, sum.low);
    atomic_add(&entry.chunk[c].high, sum.high);
  }
}

// Where in the file's own bytes, with stuffed zeros, its chunks begin. Each thread counts in a part of them.
STOKER_DEVICE void note_offsets(EntropyShared& shared, const Row& row, uint32_t bytes, Outline& outline) {
  const uint8_t* const data = pointer<const uint8_t>(row.file) + row.scan;
  const uint32_t size = row.file_bytes - row.scan, each = 4 * chunk_words(outline.bits);
  const uint32_t part = size / thread_count() + 1;
  const uint32_t begin = smaller(thread_index() * part, size), end = smaller(begin + part, size);
  const auto stuffed = [&](uint32_t at) { return at > 0 && data[at] == 0 && data[at - 1] == 255; };
  uint32_t dropped = 0, total = 0;
  for (uint32_t at = begin; at < end; ++at) dropped += stuffed(at);
  uint32_t kept = begin - (inclusive_sum(dropped, shared.sums, total) - dropped);
  uint32_t next = (kept + each - 1) / each;
  for (uint32_t at = begin; at < end && kept < bytes && next < outline.chunks; ++at) {
    if (stuffed(at)) continue;
    if (kept++ == next * each) outline.chunk[next++].offset = at;
  }
}

// The sum of all threads' parts.
STOKER_DEVICE Checksum sum_of_all(EntropyShared& shared, const Checksum& part) {
  Checksum sum;
  inclusive_sum(part.low, shared.sums, sum.low);
  inclusive_sum(part.high, shared.sums, sum.high);
  return sum;
}

// Keeps what has been found, and tells the host what it needs to read the file in parts.
STOKER_DEVICE void note(EntropyShared& shared, const Row& row, const Place& place, const Sequence& sequence,
                        const SubsequenceState& states, Outline& outline) {
  if (sequence.count > kIndexSubsequences) return;  // it was asked for less than that; the host drops the entry
  IndexEntry& entry = *pointer<IndexEntry>(row.index);
  const uint32_t bytes = pointer<const uint32_t>(place.segment_start)[place.segments];
  block_barrier();
  note_beginnings(row, place, sequence, states, entry);
  for (uint32_t c = thread_index(); c < kIndexChunks; c += thread_count()) entry.chunk[c] = {};
  if (thread_index() == 0) {
    entry.unused = 0;
    entry.checksum = *pointer<const Checksum>(place.checksum);
    entry.bytes = bytes;
    entry.bits = outline.bits = sequence.bits;
    entry.count = sequence.count;
    outline.chunks = place.segments > 1 ? 0 : (sequence.count + kChunkSubsequences - 1) / kChunkSubsequences;
  }
  block_barrier();
  for (uint32_t c = thread_index(); c < outline.chunks; c += thread_count())
    outline.chunk[c].blocks = entry.at[c * kChunkSubsequences].blocks;
  if (outline.chunks > 0) {
    note_checksums(row, place, outline, bytes, entry);
    note_offsets(shared, row, bytes, outline);
    block_barrier();
  }
  const Checksum seal = sum_of_all(shared, part_of_seal(entry, thread_index(), thread_count(), row.seed));
  if (thread_index() == 0) entry.seal = seal;
}

// Whether an entry is as it was written, and the data, or the part of them that is there, are those that it was made of.
// `part`: this thread's of its seal. All threads take part.
STOKER_DEVICE bool is_of(EntropyShared& shared, const IndexEntry& entry, const Checksum& part, const Row& row,
                         const Place& place) {
  const Checksum seal = sum_of_all(shared, part);
  if (seal.low != entry.seal.low || seal.high != entry.seal.high) return false;
  if (entry.bits < 32 || entry.bits % 32 || entry.count > kIndexSubsequences) return false;
  uint32_t bytes = entry.bytes;
  Checksum expected = entry.checksum;
  if (row.part_end) {
    const uint32_t begin = 4 * row.part_word, end = 4 * row.part_end * chunk_words(entry.bits);
    if (row.part_word != row.part_begin * chunk_words(entry.bits) || bytes < begin) return false;
    bytes = smaller(bytes, end) - begin;
    expected = {};
    for (uint32_t c = row.part_begin; c < row.part_end && c < kIndexChunks; ++c) {
      expected.low += entry.chunk[c].low;
      expected.high += entry.chunk[c].high;
    }
  }
  const Checksum& checksum = *pointer<const Checksum>(place.checksum);
  return expected.low == checksum.low && expected.high == checksum.high &&
         bytes == pointer<const uint32_t>(place.segment_start)[place.segments];
}

// Of the subsequences from `first` to `behind`, the last that begins before, or exactly with, a block of the scan.
STOKER_DEVICE uint32_t subsequence_before(const IndexEntry& entry, uint32_t first, uint32_t behind, uint32_t block) {
  uint32_t found = first;
  for (uint32_t after = behind; after - found > 1;) {
    const uint32_t middle = (found + after) / 2;
    const Beginning& at = entry.at[middle];
    if (at.blocks < block || (at.blocks == block && state_position(at.state) == 0)) found = middle;
    else after = middle;
  }
  return found;
}

// The first block of the scan that the window needs; of a file in segments, the last MCU before its segment is needed
// too, since running sums count from there.
STOKER_DEVICE uint32_t first_needed(const Row& row, const Place& place) {
  const uint32_t mcu = row.first_row * row.mcu_columns;
  if (place.segments == 1) return mcu * row.blocks;
  const uint32_t segment = mcu / row.restart_interval;
  return segment ? (segment * row.restart_interval - 1) * row.blocks : 0;
}

// Behind which block of the scan writing a subsequence ends: the last of its segment that is needed.
STOKER_DEVICE uint32_t last_of(const Row& row, const Place& place, const Sequence& sequence, uint32_t local) {
  const uint32_t mcus = row.needed_rows * row.mcu_columns;
  if (place.segments == 1) return mcus * row.blocks;
  return smaller(mcus, (sequence.at(local).segment + 1) * row.restart_interval) * row.blocks;
}

// Whether a subsequence that was written from its beginning ended as the entry says.
STOKER_DEVICE bool ended_well(const Row& row, const Place& place, const Sequence& sequence, const End& reached,
                              uint32_t i) {
  const uint32_t local = i - row.part_begin * kChunkSubsequences;
  if (reached.blocks >= last_of(row, place, sequence, local)) return true;  // what is behind is nobody's, or padding
  // The last of its segment, or of what is there: blocks are missing.
  if (local + 1 == sequence.first[sequence.at(local).segment + 1] || !reached.reached) return false;
  const Beginning& next = pointer<const IndexEntry>(row.index)->at[i + 1];
  return reached.state == next.state && reached.blocks == next.blocks;
}

// Decodes what the window needs of a file whose entry is right; sees to it that it is.
STOKER_DEVICE void decode_known(EntropyShared& shared, const Row& row, const Place& place, uint32_t* status) {
  const IndexEntry& entry = *pointer<const IndexEntry>(row.index);
  const Sequence sequence = {place, pointer<const uint32_t>(place.segment_start),
                             pointer<const uint32_t>(place.segment_first), entry.bits,
                             cut(place, entry.bits, shared.sums)};
  const uint32_t skipped = row.part_begin * kChunkSubsequences;  // subsequences that were not read
  const uint32_t behind = skipped + sequence.count;
  const uint32_t mcus = row.needed_rows * row.mcu_columns, end = mcus * row.blocks, needed = first_needed(row, place);
  if (behind > entry.count) {
    if (thread_index() == 0) atomic_or(status, kStrayed);
    return;
  }
  const uint32_t begin = subsequence_before(entry, skipped, behind, needed);
  const Beginning& first = entry.at[begin];
  const uint32_t first_mcu = first.blocks / row.blocks;
  int16_t* const dc = pointer<int16_t>(place.dc);
  if (thread_index() == 0) {
    // Nothing left for the window, or not from where it begins.
    const bool late = first.blocks > needed || (first.blocks == needed && state_position(first.state));
    shared.failed = late || first.blocks >= end ? 1 : 0;
    for (uint32_t b = first_mcu * row.blocks; b <= first.blocks && b < end; ++b) dc[b] = 0;
  }
  block_barrier();
  for (uint32_t i = begin + thread_index(); i < behind; i += thread_count()) {
    const Beginning at = entry.at[i];
    if (at.blocks >= end) break;
    const End reached = write(shared, row, place, sequence.at(i - skipped), at.state, at.blocks,
                              last_of(row, place, sequence, i - skipped));
    if (!ended_well(row, place, sequence, reached, i)) atomic_or(&shared.failed, 1);
  }
  block_barrier();
  if (shared.failed) {
    if (thread_index() == 0) atomic_or(status, kStrayed);
    return;
  }
  sum_differences(shared, row, dc, first_mcu, mcus, first.dc);
}

}  // namespace stoker::jpeg::gpu
