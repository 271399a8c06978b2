// SPDX-License-Identifier: Apache-2.0
// Concurrent reads and writes of a JPEG index. Prints faults, and nothing without one.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "gpu_kernels/jpeg_index.hpp"

using namespace stoker::jpeg::gpu;

namespace {

constexpr uint64_t kFiles = 600, kThreads = 6, kTurns = 4;
constexpr size_t kSlots = 500;  // fewer: some files find no room
constexpr size_t kPieceBytes = 1000, kLimit = kSlots * IndexEntry::bytes_of(1);

std::atomic<int> wrong{0};

void expect(bool good, const char* what) {
  if (!good && wrong++ < 10) std::printf("%s\n", what);
}

uint64_t key_of(uint64_t file) { return file * 0x9E3779B97F4A7C15u; }
std::string header_of(uint64_t file) { return "header of " + std::to_string(file); }
size_t size_of(uint64_t file) { return file % 20 ? 1000 : 900 + 100 * (file % 90); }  // some of several pieces
uint32_t bits_of(uint64_t file) { return static_cast<uint32_t>(32 * (1 + file % 100)); }

struct Seen {
  std::atomic<int> writes{0}, dropped{0}, abandoned{0};
  std::atomic<bool> writing{false};
};

// Acts like a decoder: finds a file, and reports the outcome when its batch has finished.
void decode(Index& index, uint64_t file, std::mt19937& random, Seen& seen) {
  const std::string header = header_of(file);
  const KnownFile* const named = index.named(key_of(file) | 1);
  expect(!named || named->header == header, "a name's file has another header");
  const Index::Found found = index.find({key_of(file), key_of(file) | 1, header, size_of(file), false});
  if (found.use == Index::Use::Write) {
    ++seen.writes;
    expect(!seen.writing.exchange(true), "two were to write one entry at a time");
    if (random() % 4 == 0) {  // its batch fails
      ++seen.abandoned;
      seen.writing = false;
      index.not_written(found.file->slot);
      return;
    }
    Outline outline = {};
    const uint32_t pieces = found.file->pieces;
    expect(pieces == std::min<size_t>((size_of(file) + kPieceBytes - 1) / kPieceBytes, kIndexPieces),
           "too many pieces");
    outline.bits = pieces * bits_of(file);
    outline.chunks = 1;
    IndexEntry entry = {};
    entry.bits = bits_of(file);
    entry.pieces = pieces;
    std::memcpy(reinterpret_cast<void*>(found.file->entry), &entry, IndexEntry::bytes_of(pieces));
    const bool good = random() % 8 != 0;
    seen.dropped += !good;
    seen.writing = false;
    index.written(found.file->slot, good ? &outline : nullptr);
  } else if (found.use == Index::Use::Read) {
    expect(found.file->header == header && found.file->outline.bits == bits_of(file) * found.file->pieces,
           "an entry is another file's");
    const bool right = random() % 64 != 0;
    const size_t before = index.files();
    index.read(found.file->slot, right, false);
    expect(before <= kSlots && index.bytes() <= kLimit, "more is held than may be");
  }
}

}  // namespace

int main() {
  const auto allocate = [](size_t bytes) { return reinterpret_cast<uint64_t>(std::calloc(bytes, 1)); };
  const auto release = [](uint64_t memory) { std::free(reinterpret_cast<void*>(memory)); };
  Index index(kLimit, allocate, release, kPieceBytes);
  std::vector<Seen> seen(kFiles);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (uint64_t i = 0; i < kTurns * kFiles; ++i) {
        const uint64_t file = i * (2 * t + 1) % kFiles;
        decode(index, file, random, seen[file]);
      }
    });
  for (std::thread& thread : threads) thread.join();

  std::mt19937 last(98);
  for (uint64_t turn = 0; turn < 20; ++turn)  // until none is left that was abandoned
    for (uint64_t file = 0; file < kFiles; ++file)
      if (seen[file].writes == seen[file].abandoned) decode(index, file, last, seen[file]);

  int writes = 0, dropped = 0;
  for (const Seen& one : seen) {
    expect(one.writes <= 1 + one.abandoned, "an entry was to be written again");
    writes += one.writes - one.abandoned;
    dropped += one.dropped;
  }
  const size_t slots = index.slots();
  expect(writes == static_cast<int>(slots) && slots < kSlots && slots > kSlots * 3 / 5, "the room was not all used");
  const size_t complete = index.files();
  expect(complete + static_cast<size_t>(dropped + index.rows_wrong()) >= slots && complete < slots,
         "the count of entries is off");

  const std::string packed = index.packed(0, slots, [](uint8_t* to, uint64_t from, size_t bytes) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  });
  Index other(kLimit, allocate, release, kPieceBytes);
  const auto to_device = [](uint64_t to, const uint8_t* from, size_t bytes) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  };
  expect(other.unpack(packed, to_device) == complete && other.files() == complete, "not all entries came back");
  expect(other.unpack(packed, to_device) == 0, "entries that are known came twice");
  std::mt19937 random(99);
  std::vector<Seen> again(kFiles);
  for (uint64_t file = 0; file < kFiles; ++file) decode(other, file, random, again[file]);
  return wrong ? 1 : 0;
}
