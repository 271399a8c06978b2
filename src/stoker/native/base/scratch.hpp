// SPDX-License-Identifier: Apache-2.0
// Scratch memory that is reused from row to row, and released when recent rows need much less.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "base/guarded.hpp"

namespace stoker {

// Number of allocations of 4 KiB or more, for tests that the steady state allocates nothing.
inline std::atomic<int64_t> large_allocations{0};

inline void count_allocation(size_t bytes) {
  if (bytes >= 4096) large_allocations.fetch_add(1, std::memory_order_relaxed);
}

// Source of memory for a kernel that learns its output's size while it runs. A later call may invalidate the memory of
// earlier ones.
class BufferAllocator {
 public:
  virtual uint8_t* get(size_t bytes) = 0;
  // Read `bytes` bytes of an open file from `offset` on into device memory, without memory from `get`. Return their
  // device address, or 0 if the caller has to read them into host memory: without a device, where a step on the host
  // needs the bytes, or if they could not be read there. Throw like `get`.
  virtual uint64_t read_to_device(int descriptor, uint64_t offset, size_t bytes) {
    return (void)descriptor, (void)offset, (void)bytes, 0;
  }

 protected:
  ~BufferAllocator() = default;
};

// Largest request of the current period and of the one before. Thread-safe.
class RecentHighWaterMark {
 public:
  void record(size_t bytes) {
    size_t most = now_.load(std::memory_order_relaxed);
    while (bytes > most && !now_.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {}
  }
  size_t bytes() const {
    return std::max(now_.load(std::memory_order_relaxed), before_.load(std::memory_order_relaxed));
  }
  // Start another period. A request that is recorded concurrently may be lost.
  void start_period() {
    before_.store(now_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    now_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<size_t> now_{0}, before_{0};
};

// One reusable memory area, used by one thread at a time. It grows on demand, so that the steady state allocates
// nothing; growing discards the contents. It allocates at least twice the requested size, because larger rows will
// follow and untouched pages cost nothing. `trim` releases the memory after an outlier.
class Scratch final : public BufferAllocator {
 public:
  Scratch() = default;
  Scratch(Scratch&& other) noexcept { *this = std::move(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(high_water_mark_, other.high_water_mark_);
    std::swap(total_, other.total_);
    return *this;
  }
  ~Scratch() { drop(); }

  // Call before the first `get`. `mark` records the requests; `total` is a sum of capacities that includes this one.
  // Both must outlive this object.
  void watch(RecentHighWaterMark* mark, std::atomic<size_t>* total) {
    high_water_mark_ = mark;
    total_ = total;
  }
  uint8_t* get(size_t bytes) override {
    if (high_water_mark_) high_water_mark_->record(bytes);
    if (bytes > capacity_) {
      drop();  // first, so that old and new memory never coexist
      const size_t want = size_for(bytes);
      data_ = allocate(want);
      capacity_ = want;
      if (total_) total_->fetch_add(want, std::memory_order_relaxed);
      count_allocation(want);
    }
    allow(data_, bytes);
    guard(data_ + bytes, capacity_ - bytes);
    return data_;
  }
  size_t capacity() const { return capacity_; }
  // Release the memory if it is not small and at least four times what the recent high-water mark would take. Sizes
  // that vary by less than that never cause releases. The contents are lost.
  void trim() {
    if (high_water_mark_ && capacity_ >= kSmall && capacity_ / 4 >= size_for(high_water_mark_->bytes())) drop();
  }

 private:
  static constexpr size_t kSmall = size_t{64} << 10;
  // Large areas are mapped directly: the C library caches freed memory and would not return all of it to the system.
  static constexpr size_t kLarge = size_t{1} << 20;
// A program that links objects without AddressSanitizer defines STOKER_PARTLY_GUARDED: all must release memory alike.
#if STOKER_GUARDED && !defined(STOKER_PARTLY_GUARDED)
  static constexpr bool kMaps = false;  // AddressSanitizer only tracks the bounds of the C library's allocations
#else
  static constexpr bool kMaps = true;
#endif

  static size_t size_for(size_t bytes) {
    size_t size = 4096;
    while (size / 2 < bytes) {
      if (size > ~size_t{0} / 2) throw std::bad_alloc();
      size *= 2;
    }
    return size;
  }
  static uint8_t* allocate(size_t bytes) {
    if (!kMaps || bytes < kLarge) {
      // AddressSanitizer ends the process where an allocation that may throw fails, so this one must not throw.
      void* const data = ::operator new[](bytes, std::align_val_t{64}, std::nothrow);
      if (!data) throw std::bad_alloc();
      return static_cast<uint8_t*>(data);
    }
    void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    return static_cast<uint8_t*>(data);
  }
  void drop() noexcept {
    if (!data_) return;
    allow(data_, capacity_);
    if (kMaps && capacity_ >= kLarge) ::munmap(data_, capacity_);
    else ::operator delete[](data_, std::align_val_t{64});
    if (total_) total_->fetch_sub(capacity_, std::memory_order_relaxed);
    data_ = nullptr;
    capacity_ = 0;
  }

  uint8_t* data_ = nullptr;
  size_t capacity_ = 0;
  RecentHighWaterMark* high_water_mark_ = nullptr;
  std::atomic<size_t>* total_ = nullptr;
};

// Scratch that a thread keeps between calls of one function; it is released when no recent call needed as much.
class CallScratch {
 public:
  CallScratch() { scratch_.watch(&high_water_mark_, nullptr); }
  Scratch& begin_call() {
    if (++calls_ % kPeriod == 0) {
      high_water_mark_.start_period();
      scratch_.trim();
    }
    return scratch_;
  }

 private:
  static constexpr int kPeriod = 64;
  RecentHighWaterMark high_water_mark_;
  Scratch scratch_;
  uint64_t calls_ = 0;
};

}  // namespace stoker
