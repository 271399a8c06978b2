// SPDX-License-Identifier: Apache-2.0
#include "jpeg_index.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

#include "cuda/jpeg_index.cuh"

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

stoker::gpu::Address Index::address(uint32_t slot) const {
  return chunks_[slot / kSlotsPerChunk] + slot % kSlotsPerChunk * IndexEntry::kBytes;
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

Index::Found Index::find(uint64_t key) {
  std::lock_guard<std::mutex> hold(mutex_);
  const auto known = slots_.find(key);
  if (known != slots_.end()) {
    if (states_[known->second] != State::Complete) return {};
    return {Use::Read, known->second, address(known->second)};
  }
  if (!make_room()) return {};
  const uint32_t slot = static_cast<uint32_t>(states_.size());
  states_.push_back(State::Writing);
  slots_.emplace(key, slot);
  return {Use::Write, slot, address(slot)};
}

void Index::written(uint32_t slot, bool complete) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (states_[slot] != State::Writing) return;
  states_[slot] = complete ? State::Complete : State::Dropped;
  complete_ += complete;
}

// A dropped entry's memory is not used again: other batches may still read it.
void Index::read(uint32_t slot, bool right) {
  std::lock_guard<std::mutex> hold(mutex_);
  ++(right ? rows_read_ : rows_wrong_);
  if (right || states_[slot] != State::Complete) return;
  states_[slot] = State::Dropped;
  --complete_;
}

size_t Index::files() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return complete_;
}
size_t Index::bytes() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return std::min(kSlotsPerChunk * chunks_.size(), most_slots_) * IndexEntry::kBytes;
}
int64_t Index::rows_read() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return rows_read_;
}
int64_t Index::rows_wrong() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return rows_wrong_;
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

}  // namespace stoker::jpeg::gpu
