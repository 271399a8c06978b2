// SPDX-License-Identifier: Apache-2.0
// What fits `gpu_memory_limit` is given, to the last byte (by pieces: but for ends of blocks that no piece fits), and what
// does not is refused with the account as it was. On a null device. Prints what is wrong; nothing where all is well.
#include <cstdio>
#include <functional>

#include "block_pool.hpp"

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
  std::shared_ptr<Account> account = std::make_shared<Account>();
  std::shared_ptr<Behind> behind = std::make_shared<Behind>(device, account);
  std::shared_ptr<Needed> needed = std::make_shared<Needed>();

  explicit Limited(size_t limit) { account->limit = limit; }
  ~Limited() {
    behind.reset();
    expect(account->taken == 0, "something was not given back");
  }
  Arena arena(bool mirrored) { return {device, account, needed, mirrored ? behind : nullptr}; }
  Place place() const {
    Place place;
    place.device = device;
    place.account = account;
    return place;
  }
  uint64_t left() const { return account->limit - account->taken; }
};

bool refused(const std::function<void()>& what) {
  try {
    what();
  } catch (const LimitReached&) {
    return true;
  }
  return false;
}

void arenas(bool mirrored) {
  {
    Limited all(10 * kMiB);
    Arena arena = all.arena(mirrored);
    expect(arena.take(10 * kMiB).device != 0, "all of the limit at once");
    expect(refused([&] { arena.take(1); }), "one byte more than the limit");
    arena.reset();
    expect(arena.take(10 * kMiB).device != 0, "all of the limit by the next batch");
  }
  {
    Limited all(kMiB);  // less than a block usually has
    Arena arena = all.arena(mirrored);
    for (int i = 0; i < 4; ++i) expect(arena.take(kMiB / 4).device != 0, "a small limit by pieces");
    arena.reset();
    expect(arena.take(kMiB).device != 0, "a small limit at once");
  }
  {
    Limited all(24 * kMiB);
    Arena arena = all.arena(mirrored);
    for (int i = 0; i < 95; ++i) expect(arena.take(kMiB / 4).device != 0, "by pieces");
    const uint64_t before = all.account->taken;
    expect(refused([&] { arena.take(kMiB); }), "a piece more than the limit");
    expect(all.account->taken == before, "what was refused is counted");
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
    expect(all.account->taken == 10 * kMiB, "a quarter more where there is much");
  }
}

// What is read ahead has no memory on the device yet, and as much as it then needs.
void held() {
  Limited all(10 * kMiB);
  Arena arena = all.arena(true);
  uint8_t* const host = arena.take_host(10 * kMiB);
  all.needed->saw(50 * kMiB);
  expect(arena.behind(host) != 0, "all of the limit, read ahead");
}

void outputs() {
  Limited all(8 * kMiB);
  const Place place = all.place();
  const auto pool = std::make_shared<BlockPool>(3, &place);
  {
    const BlockPool::Block small = pool->take(kMiB);
  }
  {
    const BlockPool::Block block = pool->take(8 * kMiB);  // of which what waits for use has a part
    expect(block.data && all.left() == 0, "all of the limit");
    expect(refused([&] { pool->take(1); }), "one byte more than the limit");
  }
  const BlockPool::Block again = pool->take(7 * kMiB);
  expect(again.data != nullptr, "the same block again");
}

}  // namespace

int main() {
  arenas(false);
  arenas(true);
  held();
  outputs();
  return good ? 0 : 1;
}
