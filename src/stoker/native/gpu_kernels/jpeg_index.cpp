// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/jpeg_index.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

namespace stoker::jpeg::gpu {

namespace {

constexpr size_t kChunkBytes = 2048 * IndexEntry::bytes_of(1);
constexpr size_t kSamples = 32;  // of eight bytes, spread over a file's data

uint64_t mixed(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

}  // namespace

Index::Index(size_t limit_bytes, Allocate allocate, Release release, size_t piece_bytes)
    : limit_bytes_(limit_bytes),
      piece_bytes_(piece_bytes),
      seed_(std::random_device()()),
      allocate_(std::move(allocate)),
      release_(std::move(release)) {}

Index::~Index() {
  for (const Chunk& chunk : chunks_) release_(chunk.at);
}

bool Index::make_room(size_t bytes) {
  if (!chunks_.empty() && chunks_.back().bytes - chunks_.back().used >= bytes) return true;
  const size_t more = std::min(kChunkBytes, limit_bytes_ - bytes_);
  if (full_ || more < bytes || slots_.size() >= UINT32_MAX) return false;
  try {
    chunks_.push_back({allocate_(more), more, 0});
    bytes_ += more;
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // only costs speed; `bytes` shows it
  }
}

Index::Found Index::usable(const Entry& entry) {
  if (entry.state.load(std::memory_order_acquire) != State::Complete) return {};
  return {Use::Read, &entry.file};
}

// Each file has its own seed, so that no entry has the checksums of another file's entry, wherever it comes from.
uint32_t Index::seed_of(uint64_t key) const { return static_cast<uint32_t>(mixed(seed_, key) >> 32); }

// Create the entry before taking any lock.
std::unique_ptr<Index::Entry> Index::described(const FileQuery& of, uint32_t seed, uint32_t pieces) {
  auto entry = std::make_unique<Entry>();
  KnownFile& file = entry->file;
  file.key = of.key;
  file.name = of.name;
  file.header = of.header;
  file.size = static_cast<uint32_t>(of.size);
  file.seed = seed;
  file.pieces = pieces;
  return entry;
}

Index::Entry* Index::take_slot(std::unique_ptr<Entry> entry) {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  const size_t bytes = IndexEntry::bytes_of(entry->file.pieces);
  if (!make_room(bytes)) {
    full_ = true;
    return nullptr;
  }
  entry->file.slot = static_cast<uint32_t>(slots_.size());
  entry->file.entry = chunks_.back().at + chunks_.back().used;
  chunks_.back().used += bytes;
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

Index::Found Index::find(const FileQuery& file) {
  Entry* known = nullptr;
  {
    const Table::Part& part = keys_.of(file.key);
    std::lock_guard<std::mutex> hold(part.mutex);
    const auto entry = part.entries.find(file.key);
    if (entry != part.entries.end()) known = entry->second;
  }
  if (!known) {
    if (full_) return {};
    const size_t pieces = std::clamp<size_t>((file.size + piece_bytes_ - 1) / piece_bytes_, 1, kIndexPieces);
    const auto [entry, added] =
        insert(described(file, seed_of(file.key), file.segments ? 1 : static_cast<uint32_t>(pieces)));
    if (added) return {Use::Write, &entry->file};
    if (!entry) return {};
    known = entry;
  }
  // Two files may have the same key by chance or on purpose.
  if (known->file.header != file.header || known->file.size != file.size) return {};
  State before = State::Unwritten;
  if (known->state.compare_exchange_strong(before, State::Writing)) return {Use::Write, &known->file};
  const Found result = usable(*known);
  if (result.use != Use::None) give_name(file.name, known);
  return result;
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

// Only one thread writes an entry, and no thread reads it before.
void Index::written(uint32_t slot, const Outline* outline) {
  Entry& entry = at(slot);
  if (entry.state != State::Writing) return;
  const bool complete = outline && outline->bits && outline->chunks <= kIndexChunks;
  if (complete) entry.file.outline = *outline;
  complete_ += complete;
  entry.state.store(complete ? State::Complete : State::Dropped, std::memory_order_release);
}

void Index::not_written(uint32_t slot) {
  State before = State::Writing;
  at(slot).state.compare_exchange_strong(before, State::Unwritten);
}

// The memory of a dropped entry is not reused, because other batches may still read it.
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
const KnownFile& Index::file(size_t slot) const { return at(static_cast<uint32_t>(slot)).file; }
size_t Index::files() const { return complete_; }
size_t Index::bytes() const {
  std::lock_guard<std::mutex> hold(slots_mutex_);
  return bytes_;
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
