// SPDX-License-Identifier: Apache-2.0
// Index entries of files: writing one while a file is decoded, and decoding with one when the file comes again.
#pragma once
#include "device/jpeg_phases.cuh"

namespace stoker::jpeg::gpu {

STOKER_DEVICE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Record the DC predictions at the begin of each piece, after all blocks were decoded and the running sums of their
// differences are known. The other fields were recorded while the blocks were written.
STOKER_DEVICE void note_predictions(const Row& row, const RowBuffers& buffers, uint32_t count, IndexEntry& entry) {
  const int16_t* const dc = pointer<const int16_t>(buffers.dc);
  const uint32_t blocks = row.mcu_rows * row.mcu_columns * row.blocks;
  for (uint32_t i = thread_index(); i < kIndexSubsequences * row.pieces; i += thread_count()) {
    PieceStart& at = entry.at[i];
    if (i >= count) at = {};
    uint32_t missing = (1u << row.components) - 1;
    for (uint32_t b = smaller(at.blocks + (state_position(at.state) ? 1 : 0), blocks); b-- > 0 && missing;) {
      const uint32_t c = row.component[b % row.blocks];
      if (missing >> c & 1) at.dc[c] = dc[b];
      missing &= ~(1u << c);
    }
  }
}

// `bits` is the size of a subsequence.
STOKER_DEVICE uint32_t chunk_words(uint32_t bits) { return kChunkSubsequences * (bits / 32); }

// Compute the checksums of a file's chunks. Several threads share one chunk.
STOKER_DEVICE void note_checksums(const Row& row, const RowBuffers& buffers, const Outline& outline, uint32_t bytes,
                                  IndexEntry& entry) {
  const uint32_t* const words = pointer<const uint32_t>(buffers.words);
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

// Find where the file's chunks begin in the file's own bytes, which contain stuffed zeros. Each thread counts in a part
// of the bytes.
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

// Return the number of pieces of the data. Files in segments have one piece per subsequence.
STOKER_DEVICE uint32_t count_pieces(const Sequence& sequence, uint32_t pieces, uint32_t bytes) {
  const uint32_t bits = sequence.bits / pieces;
  return pieces == 1 || bytes == 0 ? sequence.count : (8 * bytes + bits - 1) / bits;
}

// Return the sum of all threads' parts.
STOKER_DEVICE Checksum sum_of_all(EntropyShared& shared, const Checksum& part) {
  Checksum sum;
  inclusive_sum(part.low, shared.sums, sum.low);
  inclusive_sum(part.high, shared.sums, sum.high);
  return sum;
}

// Complete the entry, and pass to the host the offsets that it needs to read the file in parts.
STOKER_DEVICE void note(EntropyShared& shared, const Row& row, const RowBuffers& buffers, const Sequence& sequence,
                        Outline& outline) {
  IndexEntry& entry = *pointer<IndexEntry>(row.index);
  const uint32_t bytes = pointer<const uint32_t>(buffers.segment_start)[buffers.segments];
  const uint32_t count = count_pieces(sequence, row.pieces, bytes);
  block_barrier();
  note_predictions(row, buffers, count, entry);
  if (thread_index() == 0) {
    entry.checksum = *pointer<const Checksum>(buffers.checksum);
    entry.bytes = bytes;
    entry.bits = sequence.bits / row.pieces;
    entry.count = count;
    entry.pieces = row.pieces;
    outline.bits = sequence.bits;
    outline.chunks = buffers.segments > 1 ? 0 : (sequence.count + kChunkSubsequences - 1) / kChunkSubsequences;
  }
  for (uint32_t c = thread_index(); c < kIndexChunks; c += thread_count()) entry.chunk[c] = {};
  block_barrier();
  if (outline.chunks > 0) {
    for (uint32_t c = thread_index(); c < outline.chunks; c += thread_count())
      outline.chunk[c].blocks = entry.at[c * kChunkSubsequences * row.pieces].blocks;
    note_checksums(row, buffers, outline, bytes, entry);
    note_offsets(shared, row, bytes, outline);
    block_barrier();
  }
  const Checksum seal = sum_of_all(shared, part_of_seal(entry, row.pieces, thread_index(), thread_count(), row.seed));
  if (thread_index() == 0) entry.seal = seal;
}

// Return whether an entry is unchanged, and whether the data, or the part of them that was read, are those it was made
// from. `part` is this thread's part of the seal. All threads must take part.
STOKER_DEVICE bool is_of(EntropyShared& shared, const IndexEntry& entry, const Checksum& part, const Row& row,
                         const RowBuffers& buffers) {
  const Checksum seal = sum_of_all(shared, part);
  if (seal.low != entry.seal.low || seal.high != entry.seal.high) return false;
  if (entry.bits < 32 || entry.bits % 32 || entry.pieces != row.pieces) return false;
  if (entry.count == 0 || entry.count > kIndexSubsequences * row.pieces) return false;
  uint32_t bytes = entry.bytes;
  Checksum expected = entry.checksum;
  if (row.part_end) {
    const uint32_t each = chunk_words(entry.bits * row.pieces), begin = 4 * row.part_word,
                   end = 4 * row.part_end * each;
    if (row.part_word != row.part_begin * each || bytes < begin) return false;
    bytes = smaller(bytes, end) - begin;
    expected = {};
    for (uint32_t c = row.part_begin; c < row.part_end && c < kIndexChunks; ++c) {
      expected.low += entry.chunk[c].low;
      expected.high += entry.chunk[c].high;
    }
  }
  const Checksum& checksum = *pointer<const Checksum>(buffers.checksum);
  return expected.low == checksum.low && expected.high == checksum.high &&
         bytes == pointer<const uint32_t>(buffers.segment_start)[buffers.segments];
}

// Pieces of a known file. Pieces [skipped, read_end) were read; `sequence` starts with the first of these.
struct Known {
  const IndexEntry& entry;
  const Sequence& sequence;
  uint32_t skipped, read_end;
  uint32_t end;  // of the blocks that the window needs

  // Return the end of the blocks that piece i contributes to. The last of them may be completed by the next piece.
  STOKER_DEVICE uint32_t blocks_end(uint32_t i) const {
    if (i + 1 >= entry.count) return end;
    const PieceStart& next = entry.at[i + 1];
    return next.blocks + (state_position(next.state) ? 1 : 0);
  }
};

// Return the last of the pieces [first, end) that begins at or before a block of the scan.
STOKER_DEVICE uint32_t piece_before(const IndexEntry& entry, uint32_t first, uint32_t end, uint32_t block) {
  uint32_t before = first;
  for (uint32_t after = end; after - before > 1;) {
    const uint32_t middle = (before + after) / 2;
    const PieceStart& at = entry.at[middle];
    if (at.blocks < block || (at.blocks == block && state_position(at.state) == 0)) before = middle;
    else after = middle;
  }
  return before;
}

// Return the first block of the scan that the window needs. In a file with segments also the last MCU before its
// segment is needed, since running sums start with it.
STOKER_DEVICE uint32_t first_needed(const Row& row, const RowBuffers& buffers) {
  const uint32_t mcu = row.first_row * row.mcu_columns;
  if (buffers.segments == 1) return mcu * row.blocks;
  const uint32_t segment = mcu / row.restart_interval;
  return segment ? (segment * row.restart_interval - 1) * row.blocks : 0;
}

// Return the end of the blocks that a piece writes: the end of the needed blocks of its segment.
STOKER_DEVICE uint32_t last_of(const Row& row, const RowBuffers& buffers, const Sequence& sequence, uint32_t local) {
  const uint32_t mcus = row.needed_rows * row.mcu_columns;
  if (buffers.segments == 1) return mcus * row.blocks;
  return smaller(mcus, (sequence.at(local).segment + 1) * row.restart_interval) * row.blocks;
}

// Range of MCU columns, out of `all`.
struct Columns {
  uint32_t begin, end, all;

  // Return whether any MCU from `first` to `last` of the scan is in the range.
  STOKER_DEVICE bool meet(uint32_t first, uint32_t last) const {
    const uint32_t from = first % all, to = from + (last - first);
    return (from < end && to >= begin) || to >= all + begin;
  }
};

// Return the columns that the window needs. A file with segments needs all columns, since running sums continue from
// one segment to the next.
STOKER_DEVICE Columns needed_columns(const Row& row, const RowBuffers& buffers) {
  Columns out = {buffers.segments == 1 ? row.mcu_columns : 0, row.mcu_columns, row.mcu_columns};
  if (buffers.segments > 1) return out;
  out.end = 0;
  for (uint32_t c = 0; c < row.components; ++c) {
    const Plane& p = row.plane[c];
    if (p.columns == 0) continue;
    const uint32_t end = (static_cast<uint32_t>(p.first_column) + p.columns + p.h - 1) / p.h;
    out.begin = smaller(out.begin, p.first_column / p.h);
    out.end = out.end > end ? out.end : end;
  }
  return out;
}

// Count the pieces from `begin` on that the window needs. The list receives thread_count() of them, after skipping
// `turn` times as many.
STOKER_DEVICE uint32_t choose(EntropyShared& shared, const Row& row, const Known& known, uint32_t begin,
                              uint32_t turn) {
  const Columns columns = needed_columns(row, known.sequence.buffers);
  uint32_t done = 0;
  for (uint32_t base = begin; base < known.read_end; base += thread_count()) {
    const uint32_t i = base + thread_index();
    bool needed = i < known.read_end && known.entry.at[i].blocks < known.end;
    if (needed) {
      const uint32_t first = known.entry.at[i].blocks, end = known.blocks_end(i);
      needed = columns.meet(first / row.blocks, (end > first ? end - 1 : first) / row.blocks);
    }
    uint32_t total = 0;
    const uint32_t at = done + inclusive_sum(needed ? 1 : 0, shared.sums, total) - 1;
    if (needed && at / thread_count() == turn) shared.list[at % thread_count()] = static_cast<uint16_t>(i);
    done += total;
  }
  block_barrier();
  return done;
}

// Return whether a piece that was decoded from its begin ended in the state that the entry says.
STOKER_DEVICE bool ended_well(const Known& known, const End& reached, uint32_t last, uint32_t i) {
  if (reached.blocks >= last) return true;  // the remaining bits belong to no segment or are padding
  const Sequence& sequence = known.sequence;
  const uint32_t local = i - known.skipped;
  // This was the last piece of its segment or of the data that were read, so blocks are missing.
  if (local + 1 == sequence.first[sequence.at(local).segment + 1] || !reached.reached) return false;
  const PieceStart& next = known.entry.at[i + 1];
  return reached.state == next.state && reached.blocks == next.blocks;
}

// Convert DC differences to predictions in a piece that was written.
STOKER_DEVICE void predict(const Row& row, const RowBuffers& buffers, const PieceStart& from, const End& reached,
                           uint32_t end) {
  int16_t* const dc = pointer<int16_t>(buffers.dc);
  const uint32_t in_flight = reached.reached && state_position(reached.state) ? 1 : 0;
  const uint32_t last_end = smaller(reached.blocks + in_flight, end);
  uint32_t sums[kMaxPlanes] = {static_cast<uint32_t>(from.dc[0]), static_cast<uint32_t>(from.dc[1]),
                               static_cast<uint32_t>(from.dc[2])};
  uint32_t b = from.blocks + (state_position(from.state) ? 1 : 0), block = b % row.blocks;
  for (; b < last_end; ++b) {
    const uint32_t c = row.component[block], sum = (c == 0   ? sums[0]
                                                    : c == 1 ? sums[1]
                                                             : sums[2]) +
                                                   static_cast<uint32_t>(dc[b]);
    sums[0] = c == 0 ? sum : sums[0];
    sums[1] = c == 1 ? sum : sums[1];
    sums[2] = c >= 2 ? sum : sums[2];
    dc[b] = static_cast<int16_t>(sum);
    block = block + 1 == row.blocks ? 0 : block + 1;
  }
}

// Decode the thread's piece of the list. Return false if it disagrees with the entry. The blocks are `low` to `high`.
STOKER_DEVICE bool decode_piece(const EntropyShared& shared, const Row& row, const Known& known, uint32_t low,
                                uint32_t high) {
  const RowBuffers& buffers = known.sequence.buffers;
  const uint32_t i = shared.list[thread_index()];
  const PieceStart& at = known.entry.at[i];
  if (at.blocks < low || at.blocks >= high || state_block(at.state) >= row.period) return false;
  const uint32_t end = smaller(last_of(row, buffers, known.sequence, i - known.skipped), high);
  const End reached =
      write(shared.tables, row, buffers, known.sequence.at(i - known.skipped), at.state, at.blocks, end);
  predict(row, buffers, at, reached, end);
  // The piece is read again, because nothing stays in registers across the call.
  const uint32_t piece = shared.list[thread_index()];
  return ended_well(known, reached, last_of(row, buffers, known.sequence, piece - known.skipped), piece);
}

// Decode one block's (CTA's) share of what the window needs from a file with a valid entry, and verify the entry on the
// way. `turn` is the number of shares before this one. `shared.next` becomes the next share of this block among those
// that the row's blocks divide; 0: there is none.
STOKER_DEVICE void decode_known(EntropyShared& shared, const Row& row, const RowBuffers& buffers, uint32_t turn,
                                uint32_t* status) {
  const IndexEntry& entry = *pointer<const IndexEntry>(row.index);
  const Sequence sequence = {buffers, pointer<const uint32_t>(buffers.segment_start),
                             pointer<const uint32_t>(buffers.segment_first), entry.bits,
                             cut(buffers, entry.bits, shared.sums)};
  const uint32_t skipped = row.part_begin * kChunkSubsequences * row.pieces;  // pieces that were not read
  const Known known = {entry, sequence, skipped, skipped + sequence.count,
                       row.needed_rows * row.mcu_columns * row.blocks};
  const uint32_t needed = first_needed(row, buffers);
  if (known.read_end > entry.count) {
    if (thread_index() == 0) atomic_or(status, kStrayed);
    return;
  }
  const uint32_t begin = piece_before(entry, skipped, known.read_end, needed);
  const PieceStart& first = entry.at[begin];
  // The entry has no pieces for the window, or its pieces begin after the window does or end before it.
  if (first.blocks > needed || (first.blocks == needed && state_position(first.state)) || first.blocks >= known.end ||
      (known.read_end < entry.count && entry.at[known.read_end].blocks < known.end)) {
    if (thread_index() == 0) atomic_or(status, kStrayed);
    return;
  }
  const uint32_t all = choose(shared, row, known, begin, turn), before = turn * thread_count();
  if (all <= before) return;
  const uint32_t count = smaller(all - before, thread_count());
  // Range of the blocks that these pieces contribute to. A piece with a wrong state stops at its end.
  const uint32_t low = entry.at[shared.list[0]].blocks;
  const uint32_t high = smaller(known.blocks_end(shared.list[count - 1]), known.end);
  find_homes(row, buffers, low, high);
  if (thread_index() == 0 && all > before + row.shares * thread_count()) shared.next = turn + row.shares;
  block_barrier();
  if (thread_index() < count && !decode_piece(shared, row, known, low, high)) atomic_or(status, kStrayed);
}

}  // namespace stoker::jpeg::gpu
