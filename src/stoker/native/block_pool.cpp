// SPDX-License-Identifier: Apache-2.0
#include "block_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tensor.hpp"

namespace stoker {

namespace {

constexpr size_t kHugePage = 2u << 20;

}  // namespace

// Large blocks are on huge pages where the system allows: faulting in 4 KiB pages costs more than filling them.
uint8_t* allocate_block(size_t* bytes) {
  const bool large = *bytes >= 2 * kHugePage;
  const size_t unit = large ? kHugePage : 64;
  *bytes = (*bytes + unit - 1) / unit * unit;
  void* data = std::aligned_alloc(unit, *bytes);
  if (!data) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (large) ::madvise(data, *bytes, MADV_HUGEPAGE);
#endif
  return static_cast<uint8_t*>(data);
}

BlockPool::Block& BlockPool::Block::operator=(Block&& o) noexcept {
  if (this != &o) {
    if (data && pool) pool->give({data, capacity, stream});
    pool = std::move(o.pool);
    data = o.data;
    capacity = o.capacity;
    stream = o.stream;
    o.data = nullptr;
    o.capacity = 0;
  }
  return *this;
}

BlockPool::Block::~Block() {
  if (data && pool) pool->give({data, capacity, stream});
}

BlockPool::BlockPool(size_t kept, const gpu::Place* place)
    : kept_(kept), pid_(::getpid()), device_(place ? place->device : nullptr),
      account_(place ? place->account : nullptr) {}

uint8_t* BlockPool::allocate(size_t* bytes) {
  if (!device_) return allocate_block(bytes);
  if (!device_->apart) *bytes = gpu::aligned(*bytes);
  account_->take(*bytes);
  try {
    device_->enter();
    return reinterpret_cast<uint8_t*>(device_->allocate(*bytes));
  } catch (...) {
    account_->give(*bytes);
    throw;
  }
}

void BlockPool::release(const Free& block) noexcept {
  if (!device_) return std::free(block.data);
  device_->free(reinterpret_cast<gpu::Address>(block.data));  // waits for all work on the device
  account_->give(block.capacity);
}

BlockPool::Block BlockPool::take(size_t bytes) {
  Block b;
  b.pool = shared_from_this();
  const bool apart = device_ && device_->apart;
  if (!apart) {
    std::lock_guard<std::mutex> hold(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->capacity < bytes || it->capacity > 4 * bytes + 65536) continue;
      b.data = it->data;
      b.capacity = it->capacity;
      b.stream = it->stream;
      free_.erase(it);
      return b;
    }
  }
  // Ragged batches differ in size from run to run; the slack lets a block serve the next one.
  b.capacity = apart || !generous(bytes) ? std::max<size_t>(bytes, 1) : bytes + bytes / 8 + 64;
  try {
    b.data = allocate(&b.capacity);
  } catch (const std::bad_alloc&) {
    release_all();
    b.capacity = std::max<size_t>(bytes, 1);
    b.data = allocate(&b.capacity);
  }
  count_allocation(b.capacity);
  return b;
}

void BlockPool::release_all() {
  std::lock_guard<std::mutex> hold(mutex_);
  for (const Free& block : free_) release(block);
  free_.clear();
}

void BlockPool::give(const Free& block) {
  if (::getpid() != pid_) return;
  std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(block);
  if (free_.size() <= kept_) return;
  const auto smallest = std::min_element(free_.begin(), free_.end(),
                                         [](const Free& a, const Free& b) { return a.capacity < b.capacity; });
  release(*smallest);
  free_.erase(smallest);
}

BlockPool::~BlockPool() { release_all(); }

}  // namespace stoker
