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
  if (states_.size() < kSlotsPerChunk * chunks_.size()) return states_.size() < most_slots_;
  if (full_ || states_.size() >= most_slots_) return false;
  try {
    chunks_.push_back(allocate_(std::min(kSlotsPerChunk, most_slots_ - states_.size()) * IndexEntry::kBytes));
  } catch (const std::bad_alloc&) {
    full_ = true;  // of no consequence but for speed; `bytes` tells
  }
  return !full_;
}

Index::Found Index::readable(uint32_t slot) const {
  if (states_[slot].state != State::Complete) return {};
  return {Use::Read, states_[slot].file.get()};
}

KnownFile& Index::add(uint64_t key, std::string_view header, size_t size, uint32_t seed, uint64_t name) {
  const uint32_t slot = static_cast<uint32_t>(states_.size());
  auto file = std::make_unique<KnownFile>();
  file->key = key;
  file->name = name;
  file->slot = slot;
  file->entry = chunks_[slot / kSlotsPerChunk] + slot % kSlotsPerChunk * IndexEntry::kBytes;
  file->header = header;
  file->size = static_cast<uint32_t>(size);
  file->seed = seed;
  states_.push_back({State::Writing, std::move(file)});
  slots_.emplace(key, slot);
  if (name) names_[name] = slot;
  return *states_[slot].file;
}

Index::Found Index::find(uint64_t key, std::string_view header, size_t size, uint64_t name) {
  {
    std::shared_lock<std::shared_mutex> hold(mutex_);
    const auto known = slots_.find(key);
    if (known != slots_.end()) {
      const auto named = names_.find(name);
      const Found found = readable(known->second);
      if (found.use == Use::None || !name || (named != names_.end() && named->second == known->second)) return found;
    }
  }
  std::lock_guard<std::shared_mutex> hold(mutex_);
  const auto known = slots_.find(key);
  if (known != slots_.end()) {
    if (name) names_[name] = known->second;
    return readable(known->second);
  }
  if (!make_room()) return {};
  return {Use::Write, &add(key, header, size, seed_, name)};
}

const KnownFile* Index::named(uint64_t name) const {
  std::shared_lock<std::shared_mutex> hold(mutex_);
  const auto known = names_.find(name);
  if (known == names_.end()) return nullptr;
  const KnownFile* const file = readable(known->second).file;
  return file && file->outline.chunks > 0 ? file : nullptr;
}

void Index::written(uint32_t slot, const Outline* outline) {
  std::lock_guard<std::shared_mutex> hold(mutex_);
  Slot& s = states_[slot];
  if (s.state != State::Writing) return;
  const bool complete = outline && outline->bits && outline->chunks <= kIndexChunks;
  if (complete) s.file->outline = *outline;
  s.state = complete ? State::Complete : State::Dropped;
  complete_ += complete;
}

// A dropped entry's memory is not used again: other batches may still read it.
void Index::read(uint32_t slot, bool right, bool part) {
  ++(right ? rows_read_ : rows_wrong_);
  rows_in_part_ += right && part;
  if (right) return;
  std::lock_guard<std::shared_mutex> hold(mutex_);
  if (states_[slot].state != State::Complete) return;
  states_[slot].state = State::Dropped;
  --complete_;
}

size_t Index::slots() const {
  std::shared_lock<std::shared_mutex> hold(mutex_);
  return states_.size();
}
size_t Index::files() const {
  std::shared_lock<std::shared_mutex> hold(mutex_);
  return complete_;
}
size_t Index::bytes() const {
  std::shared_lock<std::shared_mutex> hold(mutex_);
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

uint64_t name_key(std::string_view path) {
  uint64_t h = mixed(1, path.size()), v = 0;
  for (size_t at = 0; at < path.size(); at += 8, v = 0) {
    std::memcpy(&v, path.data() + at, std::min<size_t>(8, path.size() - at));
    h = mixed(h, v);
  }
  return h ? h : 1;
}

}  // namespace stoker::jpeg::gpu
