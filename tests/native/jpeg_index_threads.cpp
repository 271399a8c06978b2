// SPDX-License-Identifier: Apache-2.0
// What threads find in an index, and put there, at the same time. Prints what is wrong; nothing where all is well.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "jpeg_index.hpp"

using namespace stoker::jpeg::gpu;

namespace {

constexpr uint64_t kFiles = 600, kThreads = 6, kTurns = 4;
constexpr size_t kSlots = 500;  // fewer: some files find no room

std::atomic<int> wrong{0};

void expect(bool good, const char* what) {
  if (!good && wrong++ < 10) std::printf("%s\n", what);
}

uint64_t key_of(uint64_t file) { return file * 0x9E3779B97F4A7C15u; }
std::string header_of(uint64_t file) { return "header of " + std::to_string(file); }
uint32_t bits_of(uint64_t file) { return static_cast<uint32_t>(32 * (1 + file % 100)); }

struct Seen {
  std::atomic<int> writes{0}, dropped{0};
};

// What a decoder does with a file: finds it, and when its batch has finished, says how that went.
void decode(Index& index, uint64_t file, std::mt19937& random, Seen& seen) {
  const std::string header = header_of(file);
  const KnownFile* const named = index.named(key_of(file) | 1);
  expect(!named || named->header == header, "a name's file has another header");
  const Index::Found found = index.find(key_of(file), header, 1000, key_of(file) | 1);
  if (found.use == Index::Use::Write) {
    ++seen.writes;
    Outline outline = {};
    outline.bits = bits_of(file);
    outline.chunks = 1;
    IndexEntry entry = {};
    entry.bits = outline.bits;
    std::memcpy(reinterpret_cast<void*>(found.file->entry), &entry, sizeof entry);
    const bool good = random() % 8 != 0;
    seen.dropped += !good;
    index.written(found.file->slot, good ? &outline : nullptr);
  } else if (found.use == Index::Use::Read) {
    expect(found.file->header == header && found.file->outline.bits == bits_of(file), "an entry is another file's");
    const bool right = random() % 64 != 0;
    const size_t before = index.files();
    index.read(found.file->slot, right, false);
    expect(before <= kSlots && index.bytes() <= kSlots * IndexEntry::kBytes, "more is held than may be");
  }
}

}  // namespace

int main() {
  const auto allocate = [](size_t bytes) { return reinterpret_cast<uint64_t>(std::calloc(bytes, 1)); };
  const auto release = [](uint64_t memory) { std::free(reinterpret_cast<void*>(memory)); };
  Index index(kSlots * IndexEntry::kBytes, allocate, release);
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

  int writes = 0, dropped = 0;
  for (const Seen& one : seen) {
    expect(one.writes <= 1, "two were to write one entry");
    writes += one.writes;
    dropped += one.dropped;
  }
  expect(writes == static_cast<int>(kSlots) && index.slots() == kSlots, "the room was not all used");
  const size_t complete = index.files();
  expect(complete + static_cast<size_t>(dropped + index.rows_wrong()) >= kSlots && complete < kSlots, "the count of entries is off");

  const std::string packed = index.packed(0, kSlots, [](uint8_t* to, uint64_t from, size_t bytes) {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  });
  Index other(kSlots * IndexEntry::kBytes, allocate, release);
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
