// SPDX-License-Identifier: Apache-2.0
// Allocations that fit `gpu_memory_limit` succeed, to the last byte (in pieces: except ends of blocks that no piece fits).
// Others are refused, and the account stays unchanged. On a null device. Prints faults, and nothing without one.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <thread>

#include "gpu/block_pool.hpp"

using namespace stoker;
using namespace stoker::gpu;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
bool good = true;

void expect(bool right, const char* what) {
  if (!right) std::printf("%s\n", what);
  good &= right;
}

struct Limited {
  std::shared_ptr<Device> device = open_null();
  std::shared_ptr<MemoryQuota> quota = std::make_shared<MemoryQuota>();
  std::shared_ptr<DeviceBackingPool> backing_pool = std::make_shared<DeviceBackingPool>(device, quota);
  std::shared_ptr<HighWaterMark> high_water_mark = std::make_shared<HighWaterMark>();

  explicit Limited(size_t limit) { quota->limit = limit; }
  ~Limited() {
    backing_pool.reset();
    expect(quota->taken == 0, "something was not released");
  }
  Arena arena(bool mirrored) { return {device, quota, high_water_mark, mirrored ? backing_pool : nullptr}; }
  DeviceResources allocate_value() const {
    DeviceResources resources;
    resources.device = device;
    resources.quota = quota;
    return resources;
  }
  uint64_t left() const { return quota->limit - quota->taken; }
};

bool refused(const std::function<void()>& what) {
  try {
    what();
  } catch (const LimitReached&) { return true; }
  return false;
}

void arenas(bool mirrored) {
  {
    Limited all(10 * kMiB);
    Arena arena = all.arena(mirrored);
    expect(arena.take(10 * kMiB).device != 0, "the whole limit in one allocation");
    expect(refused([&] { arena.take(1); }), "one byte more than the limit");
    arena.reset();
    expect(arena.take(10 * kMiB).device != 0, "all of the limit by the next batch");
  }
  {
    Limited all(kMiB);  // less than a block usually has
    Arena arena = all.arena(mirrored);
    for (int i = 0; i < 4; ++i) expect(arena.take(kMiB / 4).device != 0, "a small limit by pieces");
    arena.reset();
    expect(arena.take(kMiB).device != 0, "a small limit in one allocation");
  }
  {
    Limited all(24 * kMiB);
    Arena arena = all.arena(mirrored);
    for (int i = 0; i < 95; ++i) expect(arena.take(kMiB / 4).device != 0, "by pieces");
    const uint64_t before = all.quota->taken;
    expect(refused([&] { arena.take(kMiB); }), "a piece more than the limit");
    expect(all.quota->taken == before, "a refused allocation is counted");
  }
  {
    Limited all(20 * kMiB);
    Arena arena = all.arena(mirrored), other = all.arena(mirrored);
    arena.take(8 * kMiB);
    expect(other.take(12 * kMiB).device != 0, "what another one leaves, while it wants a quarter more if it can");
  }
  {
    Limited all(1000 * kMiB);
    Arena arena = all.arena(mirrored);
    arena.take(8 * kMiB);
    expect(all.quota->taken == 10 * kMiB, "a quarter more where there is much");
  }
}

// Prefetched batches have no device memory yet, and later get what they need.
void held() {
  Limited all(10 * kMiB);
  Arena arena = all.arena(true);
  uint8_t* const host = arena.take_host(10 * kMiB);
  all.high_water_mark->record(50 * kMiB);
  expect(arena.device_address(host) != 0, "the whole limit for prefetched inputs");
}

void outputs() {
  Limited all(8 * kMiB);
  const DeviceResources resources = all.allocate_value();
  const auto pool = std::make_shared<BlockPool>(3, &resources);
  { const BlockPool::Block small = pool->take(kMiB); }
  {
    const BlockPool::Block block = pool->take(8 * kMiB);  // of which what waits for use has a part
    expect(block.data && all.left() == 0, "all of the limit");
    expect(refused([&] { pool->take(1); }), "one byte more than the limit");
  }
  const BlockPool::Block again = pool->take(7 * kMiB);
  expect(again.data != nullptr, "the same block again");
}

// A refused request must not count, or a fitting request of another thread is refused.
void several_threads() {
  MemoryQuota quota;
  quota.limit = 10 * kMiB;
  std::atomic<bool> over{false};
  std::thread greedy([&] {
    while (!over)
      if (!refused([&] { quota.charge(11 * kMiB); })) quota.release(11 * kMiB);
  });
  bool always = true;
  for (int i = 0; i < 300'000; ++i) {
    if (refused([&] { quota.charge(10 * kMiB); })) always = false;
    else quota.release(10 * kMiB);
  }
  over = true;
  greedy.join();
  expect(always, "all of the limit, beside a thread that wants more than the limit");
  expect(refused([&] { quota.charge(~uint64_t{0} - kMiB); }), "a number of bytes that overflows");
  expect(quota.taken == 0, "a refused allocation is counted");
}

// Host memory was allocated with spare room. When it is sent to the device, other batches hold the device memory.
void the_rest_is_taken() {
  Limited all(8 * kMiB);
  Arena arena = all.arena(true);
  uint8_t* const host = arena.take_host(kMiB);
  const DeviceBackingPool::Memory others = all.backing_pool->take(2 * kMiB);
  all.quota->charge(5 * kMiB);
  const Address there = arena.device_address(host);
  expect(there != 0 && all.left() == 0, "what has been taken of a block, where all of the block does not fit");
  host[kMiB - 1] = 7;
  arena.send(0);
  expect(reinterpret_cast<const uint8_t*>(there)[kMiB - 1] == 7, "the part of a block is sent");
  expect(refused([&] { arena.take(1); }), "a byte more than the limit");
  all.quota->release(5 * kMiB);
  expect(arena.take(kMiB).device != 0, "another piece, once there is memory");
  arena.reset();
  expect(arena.take(kMiB).device != 0, "the next batch");
  arena.reset();
  all.backing_pool->release(others);
}

// Another program holds the device memory. The rest of each block is usable then.
void a_full_device() {
  Limited all(~size_t{0});
  Arena arena = all.arena(false);
  const uint64_t free = all.device->free_bytes();
  set_null_driver_bytes(free - 20 * kMiB);
  for (int i = 0; i < 3; ++i) arena.take(3 * kMiB);  // two blocks, of 3.75 and 8.44 MiB
  arena.take(5 * kMiB);                              // one of 6.25 MiB
  int pieces = 0;
  try {
    for (;; ++pieces) arena.take(kMiB / 4);
  } catch (const std::bad_alloc&) {}
  expect(all.device->free_bytes() < kMiB / 4 && pieces == 3 + 9 + 5 + 6,
         "what blocks have left, and all of the device");
  set_null_driver_bytes(0);
}

// A child has none of its parent's threads: a lock that one of them held is never released there.
void forked() {
  constexpr size_t kBlocks = 30'000;  // looking through them keeps the lock nearly all the time
  const auto pool = std::make_shared<BlockPool>(kBlocks + 1);
  {
    std::vector<BlockPool::Block> blocks;
    for (size_t i = 0; i < kBlocks; ++i) blocks.push_back(pool->take(64));
  }
  std::atomic<bool> over{false};
  std::thread busy([&] {
    while (!over) pool->take(kMiB);
  });
  bool ended = true;
  for (int i = 0; i < 20 && ended; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);
      pool->~BlockPool();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  over = true;
  busy.join();
  expect(ended, "a forked child waits for a lock of its parent");
}

}  // namespace

int main() {
  arenas(false);
  arenas(true);
  held();
  outputs();
  several_threads();
  the_rest_is_taken();
  a_full_device();
  forked();
  return good ? 0 : 1;
}
