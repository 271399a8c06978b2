// SPDX-License-Identifier: Apache-2.0
// Conversion of entropy-coded bytes to words: remove stuffed zeros and restart markers, and find the end. One thread
// block (CTA) per row. At the same time, other blocks prepare the rows that are spread over the device.
#pragma once
#include "device/block_scan.cuh"
#include "device/jpeg_phases.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kChunkBytes = 16;  // per thread and tile
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
  if (at >= data.begin && at + kChunkBytes <= data.end) return *pointer<const Chunk>(at);
  Chunk chunk = {};
  if (at >= data.end) return chunk;
  STOKER_UNROLL for (uint32_t i = 0; i < kChunkBytes; ++i) if (at + i >= data.begin && at + i < data.end)
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
  const uint32_t size = at + kChunkBytes <= data.end ? kChunkBytes : static_cast<uint32_t>(data.end - at);
  return (1u << size) - (1u << early);
}

STOKER_DEVICE Finding examine(const Extent& data, uint64_t at, const Chunk& chunk) {
  Finding found;
  const uint32_t inside = bytes_inside(data, at), ff = bytes_equal(chunk, 0xFFFFFFFFu, 0xFFFFFFFFu) & inside;
  const uint32_t after_ff = (ff << 1 | (byte_at(data, at - 1) == 255 ? 1u : 0u)) & kAllBytes;
  found.keep = inside & ~ff & ~after_ff;
  if (ff == 0) return found;
  const uint32_t after = byte_at(data, at + kChunkBytes);
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
  alignas(16) uint8_t bytes[kUnstuffThreads * kChunkBytes + 16];
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
  STOKER_UNROLL for (uint32_t i = 0; i < kChunkBytes; ++i) {
    if (found.keep >> i & 1) shared.bytes[at++] = static_cast<uint8_t>(chunk.byte(i));
    if (!(found.restarts >> i & 1)) continue;
    const uint32_t code = i + 1 < kChunkBytes ? chunk.byte(i + 1) : next_byte;
    if (restart + 1 < buffers.segments) {
      starts[restart + 1] = done + at;
      if ((code & 7) != (restart & 7)) atomic_or(status, kRestartDamage);
    } else if (restart + 1 == buffers.segments) {
      shared.limit = at;  // more markers than segments can exist: treat this one as the end
    }
    ++restart;
  }
}

// Memory of a block, which either unstuffs or prepares.
union UnstuffOrTables {
  UnstuffShared unstuff;
  Tables tables;
};

// Build the tables of a row that is spread over the device, and find its blocks' destinations.
STOKER_DEVICE void prepare(const Row& row, const RowBuffers& buffers, Tables& tables) {
  if (!buffers.tables) return;
  build_tables(row, tables);
  find_homes(row, buffers, 0, row.needed_rows * row.mcu_columns * row.blocks);
  block_barrier();
  copy_tables(tables, *pointer<Tables>(buffers.tables));
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2)
    stoker_jpeg_unstuff(uint64_t rows, uint64_t row_buffers, uint64_t statuses, uint64_t count) {
  STOKER_SHARED(UnstuffOrTables, memory);
  UnstuffShared& shared = memory.unstuff;
  const uint32_t number = block_index() % static_cast<uint32_t>(count);
  const RowBuffers& buffers = pointer<const RowBuffers>(row_buffers)[number];
  const Row& row = pointer<const Row>(rows)[buffers.row];
  if (block_index() >= count) return prepare(row, buffers, memory.tables);
  uint32_t* const status = pointer<uint32_t>(statuses) + buffers.row;
  uint32_t* const words = pointer<uint32_t>(buffers.words);
  const Extent data = {row.file + row.scan, row.file + row.file_bytes, row.restart_interval != 0};
  const uint32_t thread = thread_index(), threads = thread_count(), tile_bytes = threads * kChunkBytes;
  uint32_t written = 0, carry = 0, restarts = 0;  // written words; bytes that are not written yet; markers so far
  bool ended = false;
  Checksum checksum = {};
  if (thread == 0) {
    shared.end = shared.limit = kNone;
    pointer<uint32_t>(buffers.segment_start)[0] = 0;
  }
  block_barrier();
  const uint64_t first_tile = data.begin & ~uint64_t{15};
  Chunk ahead = load_chunk(data, first_tile + thread * kChunkBytes);
  for (uint64_t tile = first_tile; tile < data.end && !ended; tile += tile_bytes) {
    const uint64_t at = tile + thread * kChunkBytes;
    const Chunk chunk = ahead;
    ahead = load_chunk(data, at + tile_bytes);  // prefetched while this chunk is processed
    Finding found;
    if (at < data.end) found = examine(data, at, chunk);
    if (found.end != kNone) atomic_min(&shared.end, thread * kChunkBytes + found.end);
    block_barrier();
    const uint32_t end = shared.end;
    ended = end != kNone;
    if (found.end != kNone && end == thread * kChunkBytes + found.end && found.status) atomic_or(status, found.status);
    const uint32_t left = end > thread * kChunkBytes ? end - thread * kChunkBytes : 0;
    if (left < kChunkBytes) {
      found.keep &= (1u << left) - 1;
      found.restarts &= (1u << left) - 1;
    }
    const uint32_t own = bits_set(found.keep) | bits_set(found.restarts) << 16;
    uint32_t total = 0;
    const uint32_t before = inclusive_sum(own, shared.sums, total) - own;
    const uint32_t next = found.restarts >> (kChunkBytes - 1) ? *pointer<const uint8_t>(at + kChunkBytes) : 0;
    scatter(chunk, found, carry + (before & 0xFFFF), restarts + (before >> 16), 4 * written, next, buffers, shared,
            status);
    block_barrier();
    uint32_t have = carry + (total & 0xFFFF);
    restarts += total >> 16;
    if (shared.limit != kNone) {
      have = shared.limit;
      ended = true;
    }
    const uint32_t whole = have / 4;
    for (uint32_t i = thread; i < whole; i += threads) {
      const uint32_t word = swap_bytes(*reinterpret_cast<const uint32_t*>(shared.bytes + 4 * i));
      words[written + i] = word;
      add_to(checksum, word, row.part_word + written + i, row.seed);
    }
    uint8_t rest[3] = {};
    carry = have % 4;
    for (uint32_t i = 0; i < 3; ++i)
      if (i < carry) rest[i] = shared.bytes[4 * whole + i];
    written += whole;
    block_barrier();
    if (thread == 0) {
      for (uint32_t i = 0; i < 3; ++i) shared.bytes[i] = rest[i];
    }
  }
  block_barrier();
  if (thread < kPaddingWords) words[written + thread] = 0;
  const uint32_t last = carry ? shared.bytes[0] << 24 | shared.bytes[1] << 16 | shared.bytes[2] << 8 : 0;
  if (thread == 0 && carry) add_to(checksum, last, row.part_word + written, row.seed);
  Checksum whole = {};
  inclusive_sum(checksum.low, shared.sums, whole.low);
  inclusive_sum(checksum.high, shared.sums, whole.high);
  if (thread != 0) return;
  *pointer<Checksum>(buffers.checksum) = whole;
  if (carry) words[written] = last;
  pointer<uint32_t>(buffers.segment_start)[buffers.segments] = 4 * written + carry;
  if (!ended && !row.part_end) atomic_or(status, kTruncated);
  if (restarts + 1 < buffers.segments) atomic_or(status, kRestartDamage);
}

}  // namespace stoker::jpeg::gpu
