// SPDX-License-Identifier: Apache-2.0
#include "jpeg_index.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

namespace stoker::jpeg::gpu {

namespace {

constexpr size_t kSlotsPerChunk = 2048;
constexpr size_t kSamples = 32;  // of eight bytes, over a file's data

uint64_t mixed(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

}  // namespace

Index::Index(size_t limit_bytes, Allocate allocate, Release release)
    : most_slots_(std::min<size_t>(limit_bytes / IndexEntry::kBytes, UINT32_MAX)), seed_(std::random_device()()),
      allocate_(std::move(allocate)), release_(std::move(release)) {}

Index::~Index() {
  for (const stoker::gpu::Address chunk : chunks_) release_(chunk);
}

bool Index::make_room() {
  if (slots_.size() < kSlotsPerChunk * chunks_.size()) return slots_.size() < most_slots_;
  if (full_ || slots_.size() >= most_slots_) return false;
  try {
    chunks_.push_back(allocate_(std::min(kSlotsPerChunk, most_slots_ - slots_.size()) * IndexEntry::kBytes));
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // of no consequence but for speed; `bytes` tells
  }
}

Index::Found Index::usable(const Entry& entry) {
  if (entry.state.load(std::memory_order_acquire) != State::Complete) return {};
  return {Use::Read, &entry.file};
}

// Each file has its own: so no entry has the checksums of another file's, wherever it may have come from.
uint32_t Index::seed_of(uint64_t key) const { return static_cast<uint32_t>(mixed(seed_, key) >> 32); }

// Before any lock is taken.
std::unique_ptr<Index::Entry> Index::described(uint64_t key, std::string_view header, size_t size, uint32_t seed,
                                               uint64_t name) {
  auto entry = std::make_unique<Entry>();
  entry->file.key = key;
  entry->file.name = name;
  entry->file.header = header;
  entry->file.size = static_cast<uint32_t>(size);
  entry->file.seed = seed;
  return entry;
}

Index::Entry* Index::take_slot(std::unique_ptr<Entry> entry) {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  if (!make_room()) {
    full_ = true;
    return nullptr;
  }
  const size_t slot = slots_.size();
  entry->file.slot = static_cast<uint32_t>(slot);
  entry->file.entry = chunks_[slot / kSlotsPerChunk] + slot % kSlotsPerChunk * IndexEntry::kBytes;
  return slots_.emplace_back(std::move(entry)).get();
}

std::pair<Index::Entry*, bool> Index::insert(std::unique_ptr<Entry> entry) {
  const uint64_t key = entry->file.key, name = entry->file.name;
  Entry* added = nullptr;
  {
    Table::Part& part = keys_.of(key);
    std::lock_guard<std::mutex> hold(part.mutex);
    const auto known = part.entries.find(key);
    if (known != part.entries.end()) return {known->second, false};
    if (!(added = take_slot(std::move(entry)))) return {nullptr, false};
    part.entries.emplace(key, added);
  }
  give_name(name, added);
  return {added, true};
}

void Index::give_name(uint64_t name, Entry* entry) {
  if (!name) return;
  Table::Part& part = names_.of(name);
  std::lock_guard<std::mutex> hold(part.mutex);
  part.entries[name] = entry;
}

Index::Found Index::find(uint64_t key, std::string_view header, size_t size, uint64_t name) {
  Entry* known = nullptr;
  {
    const Table::Part& part = keys_.of(key);
    std::lock_guard<std::mutex> hold(part.mutex);
    const auto found = part.entries.find(key);
    if (found != part.entries.end()) known = found->second;
  }
  if (!known) {
    if (full_) return {};
    const auto [entry, added] = insert(described(key, header, size, seed_of(key), name));
    if (added) return {Use::Write, &entry->file};
    if (!entry) return {};
    known = entry;
  }
  if (known->file.header != header || known->file.size != size) return {};  // they have one key by chance, or on purpose
  const Found found = usable(*known);
  if (found.use != Use::None) give_name(name, known);
  return found;
}

const KnownFile* Index::named(uint64_t name) const {
  const Table::Part& part = names_.of(name);
  const Entry* known = nullptr;
  {
    std::lock_guard<std::mutex> hold(part.mutex);
    const auto found = part.entries.find(name);
    if (found == part.entries.end()) return nullptr;
    known = found->second;
  }
  const KnownFile* const file = usable(*known).file;
  return file && file->outline.chunks > 0 ? file : nullptr;
}

Index::Entry& Index::at(uint32_t slot) const {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  return *slots_[slot];
}

// Whoever is to write an entry is the only one, and nobody reads it before.
void Index::written(uint32_t slot, const Outline* outline) {
  Entry& entry = at(slot);
  if (entry.state != State::Writing) return;
  const bool complete = outline && outline->bits && outline->chunks <= kIndexChunks;
  if (complete) entry.file.outline = *outline;
  complete_ += complete;
  entry.state.store(complete ? State::Complete : State::Dropped, std::memory_order_release);
}

// A dropped entry's memory is not used again: other batches may still read it.
void Index::read(uint32_t slot, bool right, bool part) {
  ++(right ? rows_read_ : rows_wrong_);
  rows_in_part_ += right && part;
  if (right) return;
  State before = State::Complete;
  if (at(slot).state.compare_exchange_strong(before, State::Dropped)) --complete_;
}

std::vector<Index::Entry*> Index::entries(size_t begin, size_t end) const {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  std::vector<Entry*> found;
  for (size_t slot = begin; slot < std::min(end, slots_.size()); ++slot) found.push_back(slots_[slot].get());
  return found;
}

size_t Index::slots() const {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  return slots_.size();
}
uint32_t Index::seed(size_t slot) const { return at(static_cast<uint32_t>(slot)).file.seed; }
size_t Index::files() const { return complete_; }
size_t Index::bytes() const {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  return std::min(kSlotsPerChunk * chunks_.size(), most_slots_) * IndexEntry::kBytes;
}

uint64_t file_key(const uint8_t* data, size_t size, size_t header_bytes) {
  uint64_t h = mixed(0, size), v = 0;
  for (size_t at = 0; at + 8 <= header_bytes; at += 8) {
    std::memcpy(&v, data + at, 8);
    h = mixed(h, v);
  }
  const size_t from = header_bytes / 8 * 8, room = size - from;
  for (size_t i = 0; i < kSamples && room >= 8; ++i) {
    std::memcpy(&v, data + from + (room - 8) * i / (kSamples - 1), 8);
    h = mixed(h, v);
  }
  return h;
}

uint64_t name_key(std::string_view path, uint64_t state) {
  uint64_t h = mixed(mixed(1, path.size()), state), v = 0;
  for (size_t at = 0; at < path.size(); at += 8, v = 0) {
    std::memcpy(&v, path.data() + at, std::min<size_t>(8, path.size() - at));
    h = mixed(h, v);
  }
  return h ? h : 1;
}

}  // namespace stoker::jpeg::gpu
