// SPDX-License-Identifier: Apache-2.0
// Conversion of entropy-coded bytes to words: remove stuffed zeros and restart markers, and find the end. One thread
// block (CTA) per row, or several for a row that is spread over the device (jpeg_spread.cuh).
#pragma once
#include "device/block_scan.cuh"
#include "device/jpeg_phases.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kUnstuffThreads = 512;
constexpr uint32_t kNone = 0xFFFFFFFFu;

struct alignas(16) Chunk {
  uint32_t word[4];
  STOKER_DEVICE uint32_t byte(uint32_t i) const { return word[i / 4] >> (8 * (i % 4)) & 255; }
};

// Return one bit per byte of the chunk, set if the byte equals `wanted` after clearing the bits outside of `mask`; both
// are repeated 4 times.
STOKER_DEVICE uint32_t bytes_equal(const Chunk& chunk, uint32_t mask, uint32_t wanted) {
  uint32_t equal = 0;
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    const uint32_t x = (chunk.word[i] & mask) ^ wanted;
    const uint32_t zero = ~(((x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | x | 0x7F7F7F7Fu);  // the top bit of each byte
    equal |= ((zero >> 7) * 0x10204080u >> 28) << (4 * i);
  }
  return equal;
}

// Contents of 16 consecutive addresses of the data.
struct Finding {
  uint32_t keep = 0;      // bits: data bytes
  uint32_t restarts = 0;  // bits: first byte of a restart marker
  uint32_t end = kNone;   // offset of the data's end if it is in these bytes
  uint32_t status = 0;    // status bits of that end
};

struct Extent {
  uint64_t begin, end;  // addresses
  bool restarts;
};

STOKER_DEVICE Chunk load_chunk(const Extent& data, uint64_t at) {
  if (at >= data.begin && at + kUnstuffBytes <= data.end) return *pointer<const Chunk>(at);
  Chunk chunk = {};
  if (at >= data.end) return chunk;
  STOKER_UNROLL for (uint32_t i = 0; i < kUnstuffBytes; ++i) if (at + i >= data.begin && at + i < data.end)
      chunk.word[i / 4] |= static_cast<uint32_t>(*pointer<const uint8_t>(at + i)) << (8 * (i % 4));
  return chunk;
}

constexpr uint32_t kAllBytes = 0xFFFF;

STOKER_DEVICE uint32_t byte_at(const Extent& data, uint64_t at) {
  return at >= data.begin && at < data.end ? *pointer<const uint8_t>(at) : kNone;
}

// Return the bytes of a chunk that belong to the data.
STOKER_DEVICE uint32_t bytes_inside(const Extent& data, uint64_t at) {
  const uint32_t early = at < data.begin ? static_cast<uint32_t>(data.begin - at) : 0;
  const uint32_t size = at + kUnstuffBytes <= data.end ? kUnstuffBytes : static_cast<uint32_t>(data.end - at);
  return (1u << size) - (1u << early);
}

STOKER_DEVICE Finding examine(const Extent& data, uint64_t at, const Chunk& chunk) {
  Finding found;
  const uint32_t inside = bytes_inside(data, at), ff = bytes_equal(chunk, 0xFFFFFFFFu, 0xFFFFFFFFu) & inside;
  const uint32_t after_ff = (ff << 1 | (byte_at(data, at - 1) == 255 ? 1u : 0u)) & kAllBytes;
  found.keep = inside & ~ff & ~after_ff;
  if (ff == 0) return found;
  const uint32_t after = byte_at(data, at + kUnstuffBytes);
  const uint32_t zero = bytes_equal(chunk, 0xFFFFFFFFu, 0) >> 1 | (after == 0 ? 1u << 15 : 0);
  const uint32_t code = bytes_equal(chunk, 0xF8F8F8F8u, 0xD0D0D0D0u) >> 1 | ((after & ~7u) == 0xD0 ? 1u << 15 : 0);
  const uint32_t followed = inside >> 1 | (after != kNone ? 1u << 15 : 0);
  found.keep |= ff & zero & followed;
  if (data.restarts) found.restarts = ff & code & followed;
  const uint32_t ends = ff & ~found.keep & ~found.restarts;
  if (ends == 0) return found;
  found.end = bits_set((ends & (0u - ends)) - 1);
  if (!(followed >> found.end & 1)) found.status = kTruncated;
  else if (ends >> found.end & (ff >> 1 | (after == 255 ? 1u << 15 : 0)) >> found.end & 1) found.status = kFilled;
  return found;
}

struct UnstuffShared {
  alignas(16) uint8_t bytes[kUnstuffThreads * kUnstuffBytes + 16];
  uint32_t sums[kMaxWarps];
  uint32_t end, limit;
};

// Store 16 data bytes at any offset.
STOKER_DEVICE void store_chunk(const Chunk& chunk, uint8_t* to, uint32_t at) {
  const uint32_t head = (0u - at) & 3;  // bytes before the first whole word
  STOKER_UNROLL for (uint32_t i = 0; i < 3; ++i) if (i < head) to[at + i] = static_cast<uint8_t>(chunk.byte(i));
  uint32_t* const words = reinterpret_cast<uint32_t*>(to + at + head);
  STOKER_UNROLL for (uint32_t i = 0; i < 3; ++i) words[i] =
      head ? chunk.word[i] >> (8 * head) | chunk.word[i + 1] << (32 - 8 * head) : chunk.word[i];
  STOKER_UNROLL for (uint32_t i = 12; i < 16; ++i) if (i >= 12 + head) to[at + i] = static_cast<uint8_t>(chunk.byte(i));
}

// Store a chunk's data bytes and record its restart markers. `at` is the offset of the first byte in this tile.
STOKER_DEVICE void scatter(const Chunk& chunk, const Finding& found, uint32_t at, uint32_t restart, uint32_t done,
                           uint32_t next_byte, const RowBuffers& buffers, UnstuffShared& shared, uint32_t* status) {
  if (found.keep == kAllBytes) return store_chunk(chunk, shared.bytes, at);
  uint32_t* const starts = pointer<uint32_t>(buffers.segment_start);
  STOKER_UNROLL for (uint32_t i = 0; i < kUnstuffBytes; ++i) {
    if (found.keep >> i & 1) shared.bytes[at++] = static_cast<uint8_t>(chunk.byte(i));
    if (!(found.restarts >> i & 1)) continue;
    const uint32_t code = i + 1 < kUnstuffBytes ? chunk.byte(i + 1) : next_byte;
    if (restart + 1 < buffers.segments) {
      starts[restart + 1] = done + at;
      if ((code & 7) != (restart & 7)) atomic_or(status, kRestartDamage);
    } else if (restart + 1 == buffers.segments) {
      shared.limit = at;  // more markers than segments can exist: treat this one as the end
    }
    ++restart;
  }
}

// Place in a row's data up to which it is unstuffed.
struct Unstuffed {
  uint32_t written = 0, carry = 0, restarts = 0;  // written words; bytes that are not written yet; markers so far
  bool ended = false;
  Checksum checksum = {};
};

// Unstuff the tiles from address `from` to `to`. The bytes that are not written yet begin `shared.bytes`.
STOKER_DEVICE void unstuff_tiles(const Row& row, const RowBuffers& buffers, const Extent& data, uint64_t from,
                                 uint64_t to, Unstuffed& place, UnstuffShared& shared, uint32_t* status) {
  uint32_t* const words = pointer<uint32_t>(buffers.words);
  const uint32_t thread = thread_index(), threads = thread_count(), tile_bytes = threads * kUnstuffBytes;
  const bool has_checksum = row.index != 0;
  Chunk ahead = load_chunk(data, from + thread * kUnstuffBytes);
  for (uint64_t tile = from; tile < to && !place.ended; tile += tile_bytes) {
    const uint64_t at = tile + thread * kUnstuffBytes;
    const Chunk chunk = ahead;
    ahead = load_chunk(data, at + tile_bytes);  // prefetched while this chunk is processed
    Finding found;
    if (at < data.end) found = examine(data, at, chunk);
    if (found.end != kNone) atomic_min(&shared.end, thread * kUnstuffBytes + found.end);
    block_barrier();
    const uint32_t end = shared.end;
    place.ended = end != kNone;
    if (found.end != kNone && end == thread * kUnstuffBytes + found.end && found.status)
      atomic_or(status, found.status);
    const uint32_t left = end > thread * kUnstuffBytes ? end - thread * kUnstuffBytes : 0;
    if (left < kUnstuffBytes) {
      found.keep &= (1u << left) - 1;
      found.restarts &= (1u << left) - 1;
    }
    const uint32_t own = bits_set(found.keep) | bits_set(found.restarts) << 16;
    uint32_t total = 0;
    const uint32_t before = inclusive_sum(own, shared.sums, total) - own;
    const uint32_t next = found.restarts >> (kUnstuffBytes - 1) ? *pointer<const uint8_t>(at + kUnstuffBytes) : 0;
    scatter(chunk, found, place.carry + (before & 0xFFFF), place.restarts + (before >> 16), 4 * place.written, next,
            buffers, shared, status);
    block_barrier();
    uint32_t have = place.carry + (total & 0xFFFF);
    place.restarts += total >> 16;
    if (shared.limit != kNone) {
      have = shared.limit;
      place.ended = true;
    }
    const uint32_t whole = have / 4;
    for (uint32_t i = thread; i < whole; i += threads) {
      const uint32_t word = swap_bytes(*reinterpret_cast<const uint32_t*>(shared.bytes + 4 * i));
      words[place.written + i] = word;
      if (has_checksum) add_to(place.checksum, word, row.part_word + place.written + i, row.seed);
    }
    uint8_t rest[3] = {};
    place.carry = have % 4;
    for (uint32_t i = 0; i < 3; ++i)
      if (i < place.carry) rest[i] = shared.bytes[4 * whole + i];
    place.written += whole;
    block_barrier();
    if (thread == 0) {
      for (uint32_t i = 0; i < 3; ++i) shared.bytes[i] = rest[i];
    }
  }
  block_barrier();
}

// Write the data's last word, zeros after it, and the number of bytes.
STOKER_DEVICE void end_data(const Row& row, const RowBuffers& buffers, Unstuffed& place, UnstuffShared& shared,
                            uint32_t* status) {
  uint32_t* const words = pointer<uint32_t>(buffers.words);
  const uint32_t thread = thread_index();
  if (thread < kPaddingWords) words[place.written + thread] = 0;
  const uint32_t last = place.carry ? shared.bytes[0] << 24 | shared.bytes[1] << 16 | shared.bytes[2] << 8 : 0;
  if (row.index) {
    if (thread == 0 && place.carry) add_to(place.checksum, last, row.part_word + place.written, row.seed);
    Checksum whole = {};
    inclusive_sum(place.checksum.low, shared.sums, whole.low);
    inclusive_sum(place.checksum.high, shared.sums, whole.high);
    if (thread == 0) *pointer<Checksum>(buffers.checksum) = whole;
  }
  if (thread != 0) return;
  if (place.carry) words[place.written] = last;
  pointer<uint32_t>(buffers.segment_start)[buffers.segments] = 4 * place.written + place.carry;
  if (!place.ended && !row.part_end) atomic_or(status, kTruncated);
  if (place.restarts + 1 < buffers.segments) atomic_or(status, kRestartDamage);
}

// Count the data bytes from `data.begin` to `to`, the address of a tile after the first one. Set `shared.end` if they
// have the data's end.
STOKER_DEVICE uint32_t count_bytes(const Extent& data, uint64_t to, UnstuffShared& shared) {
  const uint32_t tile_bytes = thread_count() * kUnstuffBytes;
  constexpr uint32_t kTogether = 4;
  uint32_t count = 0;
  for (uint64_t tile = data.begin & ~uint64_t{kUnstuffBytes - 1}; tile < to; tile += kTogether * tile_bytes) {
    Chunk chunk[kTogether];  // their loads wait for memory together
    STOKER_UNROLL for (uint32_t k = 0; k < kTogether; ++k) chunk[k] =
        load_chunk(data, tile + k * tile_bytes + thread_index() * kUnstuffBytes);
    STOKER_UNROLL for (uint32_t k = 0; k < kTogether; ++k) {
      const uint64_t at = tile + k * tile_bytes + thread_index() * kUnstuffBytes;
      if (at >= to) continue;
      const Finding found = examine(data, at, chunk[k]);
      count += bits_set(found.keep);
      if (found.end != kNone) shared.end = 0;  // all threads that write it write the same
    }
  }
  uint32_t total = 0;
  inclusive_sum(count, shared.sums, total);
  return total;
}

// Unstuff one of `parts` parts of a row with one segment. Each block counts the bytes before its part itself, which is
// fast because that needs no order, so that no block waits for another one. The block whose part has the data's end
// completes them.
STOKER_DEVICE void unstuff_part(const Row& row, const RowBuffers& buffers, uint32_t part, uint32_t parts,
                                UnstuffShared& shared, uint32_t* status) {
  const Extent data = {row.file + row.scan, row.file + row.file_bytes, false};  // a restart marker is an end
  const uint32_t thread = thread_index(), tile_bytes = thread_count() * kUnstuffBytes;
  const uint64_t first_tile = data.begin & ~uint64_t{kUnstuffBytes - 1};
  const uint64_t tiles = (data.end - first_tile + tile_bytes - 1) / tile_bytes;
  const uint64_t own = (tiles + parts - 1) / parts * tile_bytes, from = first_tile + part * own;
  if (part && from >= data.end) return;
  if (thread == 0) {
    shared.end = shared.limit = kNone;
    if (part == 0) pointer<uint32_t>(buffers.segment_start)[0] = 0;
  }
  block_barrier();
  Unstuffed place;
  if (part) {
    const uint32_t before = count_bytes(data, from, shared);
    const bool is_past = shared.end != kNone;
    block_barrier();  // before this part's own end is stored there
    if (is_past) return;
    place.written = before / 4;
    place.carry = before % 4;
    // The bytes of a word that the part before begins. At least eight of 16 bytes without an end are data.
    if (thread == 0) {
      const uint64_t at = from - kUnstuffBytes;
      uint32_t keep = examine(data, at, load_chunk(data, at)).keep, wanted = place.carry;
      for (uint32_t i = kUnstuffBytes; i-- > 0 && wanted;)
        if (keep >> i & 1) shared.bytes[--wanted] = *pointer<const uint8_t>(at + i);
    }
  }
  const uint64_t to = from + own < data.end ? from + own : data.end;
  unstuff_tiles(row, buffers, data, from, to, place, shared, status);
  if (place.ended || to == data.end) end_data(row, buffers, place, shared, status);
}

}  // namespace stoker::jpeg::gpu
