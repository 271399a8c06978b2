// SPDX-License-Identifier: Apache-2.0
#include "gpu/block_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/tensor.hpp"

namespace stoker {

namespace {

constexpr size_t kHugePage = 2u << 20;
constexpr size_t kPeriod = 32;                                         // requests per block that may wait
constexpr size_t kLeast = size_t{16} << 10, kSmall = size_t{1} << 20;  // of a GPU's memory

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

BlockPool::BlockPool(size_t kept, const gpu::DeviceResources* resources, Idle idle)
    : kept_(kept),
      idle_(idle),
      pid_(::getpid()),
      device_(resources ? resources->device : nullptr),
      quota_(resources ? resources->quota : nullptr) {}

uint8_t* BlockPool::allocate(size_t* bytes) {
  if (!device_) return allocate_block(bytes);
  if (!device_->separate_allocations) *bytes = gpu::aligned(*bytes);
  // There are few sizes of small blocks, so that one serves other pipelines, too (gpu/spare_memory.hpp).
  if (*bytes <= kSmall && may_overallocate(kSmall)) *bytes = std::bit_ceil(std::max(*bytes, kLeast));
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
  // Without a stream of a consumer no work uses the block.
  const auto memory = reinterpret_cast<gpu::Address>(block.data);
  if (block.stream == kNoStream) device_->reuse(memory, block.capacity);
  else device_->free(memory);  // waits for all work on the device
  quota_->release(block.capacity);
}

BlockPool::Block BlockPool::take(size_t bytes) {
  Block b;
  b.pool = shared_from_this();
  const bool separate_allocations = device_ && device_->separate_allocations;
  if (!separate_allocations) {
    std::vector<Free> outliers;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      outliers = note(bytes);
      auto best = free_.end();  // the smallest block that is large enough
      for (auto it = free_.begin(); it != free_.end(); ++it)
        if (it->capacity >= bytes && (best == free_.end() || it->capacity < best->capacity)) best = it;
      if (best != free_.end() && best->capacity <= max_capacity(bytes)) {
        b.data = best->data;
        b.capacity = best->capacity;
        b.stream = best->stream;
        free_.erase(best);
        hold();
      }
    }
    for (const Free& block : outliers) release(block);
    if (b.data) return b;
  }
  // Batches of varying shape differ in size; the slack lets a block serve the next batch, too.
  b.capacity = separate_allocations || !may_overallocate(bytes) ? std::max<size_t>(bytes, 1) : bytes + bytes / 8 + 64;
  uint8_t* data = nullptr;
  try {
    data = allocate(&b.capacity);
  } catch (const std::bad_alloc&) {
    release_all();
    b.capacity = std::max<size_t>(bytes, 1);
    data = allocate(&b.capacity);
  }
  count_allocation(b.capacity);
  std::lock_guard<std::mutex> lock(mutex_);
  b.data = data;
  hold();
  return b;
}

std::vector<BlockPool::Free> BlockPool::note(size_t bytes) {
  high_water_mark_.record(bytes);
  const size_t blocks = idle_ == Idle::AsManyAsHeld ? most_held_.bytes() : 0;
  if (++requests_ < kPeriod * std::max<size_t>({kept_, blocks, 1})) return {};
  requests_ = 0;
  high_water_mark_.start_period();
  high_water_mark_.record(bytes);
  most_held_.start_period();
  most_held_.record(held_);
  const auto outliers =
      std::stable_partition(free_.begin(), free_.end(), [this](const Free& block) { return !is_outlier(block); });
  std::vector<Free> found(outliers, free_.end());
  free_.erase(outliers, free_.end());
  return found;
}

void BlockPool::hold() { most_held_.record(++held_); }

// The fourth more keeps blocks when the number that is held varies from period to period.
size_t BlockPool::max_idle() const {
  if (idle_ == Idle::Few) return kept_;
  const size_t all = most_held_.bytes() + most_held_.bytes() / 4;
  return std::max(kept_, all > held_ ? all - held_ : 0);
}

void BlockPool::release_all() {
  std::vector<Free> found;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    found.swap(free_);
  }
  for (const Free& block : found) release(block);
}

// Release memory without the lock, so that other threads can take blocks during the wait.
void BlockPool::give(const Free& block) {
  if (::getpid() != pid_) return;
  std::vector<Free> surplus;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --held_;
    if (is_outlier(block)) {
      surplus.push_back(block);
    } else {
      free_.push_back(block);
      const auto smaller = [](const Free& a, const Free& b) { return a.capacity < b.capacity; };
      while (free_.size() > max_idle()) {
        const auto smallest = std::min_element(free_.begin(), free_.end(), smaller);
        surplus.push_back(*smallest);
        free_.erase(smallest);
      }
    }
  }
  for (const Free& one : surplus) release(one);
}

BlockPool::~BlockPool() {
  if (::getpid() == pid_) release_all();
}

}  // namespace stoker
