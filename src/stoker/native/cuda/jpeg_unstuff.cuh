// SPDX-License-Identifier: Apache-2.0
// Entropy-coded bytes to words: stuffed zeros and restart markers go, the end is found. One CTA per row.
#pragma once
#include "block_scan.cuh"
#include "jpeg_row.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kChunkBytes = 16;  // per thread and tile
constexpr uint32_t kUnstuffThreads = 512;
constexpr uint32_t kNone = 0xFFFFFFFFu;

struct alignas(16) Chunk {
  uint32_t word[4];
  STOKER_DEVICE uint32_t byte(uint32_t i) const { return word[i / 4] >> (8 * (i % 4)) & 255; }
};

STOKER_DEVICE bool has_ff(uint32_t w) { return ((~w - 0x01010101u) & w & 0x80808080u) != 0; }

// What stands at 16 consecutive addresses of the data.
struct Finding {
  uint32_t keep = 0;      // bits: data bytes
  uint32_t restarts = 0;  // bits: first byte of a restart marker
  uint32_t end = kNone;   // where the data end, if here,
  uint32_t status = 0;    // and what is wrong with that
};

struct Extent {
  uint64_t begin, end;  // addresses
  bool restarts;
};

STOKER_DEVICE Chunk load_chunk(const Extent& data, uint64_t at) {
  if (at >= data.begin && at + kChunkBytes <= data.end) return *pointer<const Chunk>(at);
  Chunk chunk = {};
  for (uint32_t i = 0; i < kChunkBytes; ++i)
    if (at + i >= data.begin && at + i < data.end)
      chunk.word[i / 4] |= static_cast<uint32_t>(*pointer<const uint8_t>(at + i)) << (8 * (i % 4));
  return chunk;
}

// An 0xFF at `at`, with what follows it, or kNone at the end of the file.
STOKER_DEVICE void judge_ff(const Extent& data, uint32_t next, uint32_t i, Finding& found) {
  const bool restart = data.restarts && next >= 0xD0 && next <= 0xD7;
  if (next == 0) {
    found.keep |= 1u << i;
  } else if (restart) {
    found.restarts |= 1u << i;
  } else if (found.end == kNone) {
    found.end = i;
    found.status = next == kNone ? uint32_t{kTruncated} : next == 0xFF ? uint32_t{kFilled} : 0;
  }
}

STOKER_DEVICE Finding examine(const Extent& data, uint64_t at, const Chunk& chunk) {
  Finding found;
  const uint32_t before = at > data.begin && at <= data.end ? *pointer<const uint8_t>(at - 1) : 0;
  const bool inside = at >= data.begin && at + kChunkBytes <= data.end;
  const bool plain = before != 255 && !has_ff(chunk.word[0]) && !has_ff(chunk.word[1]) && !has_ff(chunk.word[2]) &&
                     !has_ff(chunk.word[3]);
  if (inside && plain) {
    found.keep = 0xFFFF;
    return found;
  }
  const uint32_t after = at + kChunkBytes < data.end ? *pointer<const uint8_t>(at + kChunkBytes) : kNone;
STOKER_UNROLL for (uint32_t i = 0; i < kChunkBytes; ++i) {
    if (at + i < data.begin || at + i >= data.end) continue;
    const uint32_t byte = chunk.byte(i), previous = i ? chunk.byte(i - 1) : before;
    if (byte == 255) {
      const uint32_t next = at + i + 1 >= data.end ? kNone : i + 1 < kChunkBytes ? chunk.byte(i + 1) : after;
      judge_ff(data, next, i, found);
    } else if (previous != 255) {
      found.keep |= 1u << i;
    }
  }
  return found;
}

STOKER_DEVICE uint32_t bits_set(uint32_t v) {
  uint32_t n = 0;
  for (; v; v &= v - 1) ++n;
  return n;
}

struct UnstuffShared {
  alignas(16) uint8_t bytes[kUnstuffThreads * kChunkBytes + 16];
  uint32_t sums[kMaxWarps];
  uint32_t end, limit;
};

// Puts a chunk's data bytes in their places and notes its restart markers. `at`: of the first byte, in this tile.
STOKER_DEVICE void scatter(const Chunk& chunk, const Finding& found, uint32_t at, uint32_t restart, uint32_t done,
                           uint32_t next_byte, const Place& place, UnstuffShared& shared, uint32_t* status) {
  uint32_t* const starts = pointer<uint32_t>(place.segment_start);
STOKER_UNROLL for (uint32_t i = 0; i < kChunkBytes; ++i) {
    if (found.keep >> i & 1) shared.bytes[at++] = static_cast<uint8_t>(chunk.byte(i));
    if (!(found.restarts >> i & 1)) continue;
    const uint32_t code = i + 1 < kChunkBytes ? chunk.byte(i + 1) : next_byte;
    if (restart + 1 < place.segments) {
      starts[restart + 1] = done + at;
      if ((code & 7) != (restart & 7)) atomic_or(status, kRestartDamage);
    } else if (restart + 1 == place.segments) {
      shared.limit = at;  // more markers than there can be segments: as good as an end
    }
    ++restart;
  }
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(512, 2)
    stoker_jpeg_unstuff(uint64_t rows, uint64_t places, uint64_t statuses) {
  STOKER_SHARED(UnstuffShared, shared);
  const Place& place = pointer<const Place>(places)[block_index()];
  const Row& row = pointer<const Row>(rows)[place.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + place.row;
  uint32_t* const words = pointer<uint32_t>(place.words);
  const Extent data = {row.file + row.scan, row.file + row.file_bytes, row.restart_interval != 0};
  const uint32_t thread = thread_index(), threads = thread_count(), tile_bytes = threads * kChunkBytes;
  uint32_t written = 0, carry = 0, restarts = 0;  // words; bytes waiting in front; markers so far
  bool ended = false;
  if (thread == 0) {
    shared.end = shared.limit = kNone;
    pointer<uint32_t>(place.segment_start)[0] = 0;
  }
  block_barrier();
  for (uint64_t tile = data.begin & ~uint64_t{15}; tile < data.end && !ended; tile += tile_bytes) {
    const uint64_t at = tile + thread * kChunkBytes;
    Chunk chunk = {};
    Finding found;
    if (at < data.end) {
      chunk = load_chunk(data, at);
      found = examine(data, at, chunk);
    }
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
    scatter(chunk, found, carry + (before & 0xFFFF), restarts + (before >> 16), 4 * written, next, place, shared,
            status);
    block_barrier();
    uint32_t have = carry + (total & 0xFFFF);
    restarts += total >> 16;
    if (shared.limit != kNone) {
      have = shared.limit;
      ended = true;
    }
    const uint32_t whole = have / 4;
    for (uint32_t i = thread; i < whole; i += threads)
      words[written + i] = swap_bytes(*reinterpret_cast<const uint32_t*>(shared.bytes + 4 * i));
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
  if (thread != 0) return;
  if (carry) words[written] = (shared.bytes[0] << 24 | shared.bytes[1] << 16 | shared.bytes[2] << 8);
  pointer<uint32_t>(place.segment_start)[place.segments] = 4 * written + carry;
  if (!ended) atomic_or(status, kTruncated);
  if (restarts + 1 < place.segments) atomic_or(status, kRestartDamage);
}

}  // namespace stoker::jpeg::gpu
