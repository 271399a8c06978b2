// SPDX-License-Identifier: Apache-2.0
#include "gpu/block_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/tensor.hpp"

namespace stoker {

namespace {

constexpr size_t kHugePage = 2u << 20;
constexpr size_t kPeriod = 32;  // requests per block that may wait

}  // namespace

// Map large blocks on huge pages where the system allows it: faulting in 4 KiB pages costs more than filling them, and
// the system copies from its page cache into them faster. A block from 3 MiB on takes at most a third more than it needs.
uint8_t* allocate_block(size_t* bytes) {
  const bool large = *bytes >= kHugePage + kHugePage / 2;
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

BlockPool::BlockPool(size_t kept, const gpu::DeviceResources* resources)
    : kept_(kept),
      pid_(::getpid()),
      device_(resources ? resources->device : nullptr),
      quota_(resources ? resources->quota : nullptr) {}

uint8_t* BlockPool::allocate(size_t* bytes) {
  if (!device_) return allocate_block(bytes);
  if (!device_->separate_allocations) *bytes = gpu::aligned(*bytes);
  quota_->charge(*bytes);
  try {
    device_->enter();
    return reinterpret_cast<uint8_t*>(device_->allocate(*bytes));
  } catch (...) {
    quota_->release(*bytes);
    throw;
  }
}

void BlockPool::release(const Free& block) noexcept {
  if (!device_) return std::free(block.data);
  device_->free(reinterpret_cast<gpu::Address>(block.data));  // waits for all work on the device
  quota_->release(block.capacity);
}

BlockPool::Block BlockPool::take(size_t bytes) {
  Block b;
  b.pool = shared_from_this();
  const bool separate_allocations = device_ && device_->separate_allocations;
  if (!separate_allocations) {
    std::lock_guard<std::mutex> hold(mutex_);
    note(bytes);
    auto best = free_.end();  // the smallest block that is large enough
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->capacity >= bytes && (best == free_.end() || it->capacity < best->capacity)) best = it;
    if (best != free_.end() && best->capacity <= max_capacity(bytes)) {
      b.data = best->data;
      b.capacity = best->capacity;
      b.stream = best->stream;
      free_.erase(best);
      return b;
    }
  }
  // Batches of varying shape differ in size; the slack lets a block serve the next batch, too.
  b.capacity = separate_allocations || !may_overallocate(bytes) ? std::max<size_t>(bytes, 1) : bytes + bytes / 8 + 64;
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

void BlockPool::note(size_t bytes) {
  high_water_mark_.record(bytes);
  if (++requests_ % (kPeriod * std::max<size_t>(kept_, 1))) return;
  high_water_mark_.start_period();
  high_water_mark_.record(bytes);
  const auto outliers =
      std::stable_partition(free_.begin(), free_.end(), [this](const Free& block) { return !is_outlier(block); });
  std::for_each(outliers, free_.end(), [this](const Free& block) { release(block); });
  free_.erase(outliers, free_.end());
}

void BlockPool::release_all() {
  std::lock_guard<std::mutex> hold(mutex_);
  for (const Free& block : free_) release(block);
  free_.clear();
}

void BlockPool::give(const Free& block) {
  if (::getpid() != pid_) return;
  std::lock_guard<std::mutex> hold(mutex_);
  if (is_outlier(block)) return release(block);
  free_.push_back(block);
  if (free_.size() <= kept_) return;
  const auto smallest = std::min_element(free_.begin(), free_.end(),
                                         [](const Free& a, const Free& b) { return a.capacity < b.capacity; });
  release(*smallest);
  free_.erase(smallest);
}

BlockPool::~BlockPool() {
  if (::getpid() == pid_) release_all();
}

}  // namespace stoker
