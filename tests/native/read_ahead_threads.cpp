// SPDX-License-Identifier: Apache-2.0
// Reading ahead while rows are requested, released and dropped. Prints faults, and nothing without one.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "io/read_ahead.hpp"

using namespace stoker;

namespace {

constexpr uint64_t kRecords = 500, kBytes = 1000, kMaxBytes = 20 * kBytes;
constexpr int kThreads = 4, kTurns = 300;

std::atomic<int> wrong{0};

void expect(bool good, const char* what) {
  if (!good && wrong++ < 10) std::printf("%s\n", what);
}

// Records that count requests. Every seventh fails.
class Counted final : public Records {
 public:
  size_t size() const override { return kRecords; }
  bool read(size_t, BufferAllocator&, View&, std::string&) const override { return false; }
  int64_t cost(size_t) const override { return kBytes; }
  ReadAheadOutcome read_ahead(size_t i) const override {
    ++requested;
    if (i % 7 == 0) throw std::runtime_error("a bad sector");
    return {kBytes, i % 2 == 0};
  }
  mutable std::atomic<uint64_t> requested{0};
};

struct Random {  // of little quality, and fast to compile
  uint64_t state;
  uint64_t operator()() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; }
};

template <class F>
bool comes_true(F done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return done();
}

void check_bound() {
  const auto records = std::make_shared<Counted>();
  ReadAhead ahead(kThreads, kMaxBytes);
  for (uint64_t first = 0; first < 200; first += 10) {
    std::vector<int64_t> samples;
    for (uint64_t row = first; row < first + 10; ++row) samples.push_back(static_cast<int64_t>(7 * (row % 70) + 1));
    ahead.request(records, std::move(samples), first);
  }
  expect(comes_true([&] { return ahead.counts().bytes >= kMaxBytes; }), "no record was read ahead");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  expect(ahead.counts().bytes <= kMaxBytes + (kThreads - 1) * kBytes, "more bytes are ahead than may be");
  ahead.release(10);
  constexpr uint64_t kRoom = kMaxBytes + 10 * kBytes;  // counted from the start, as the bytes are
  expect(comes_true([&] { return ahead.counts().bytes >= kRoom; }), "released rows make no room");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  expect(ahead.counts().bytes <= kRoom + (kThreads - 1) * kBytes, "released rows make more room than they had");
  ahead.drop();
  expect(ahead.pending() == 0, "records wait after all were dropped");
  ahead.close();
  const uint64_t at_end = records->requested;
  ahead.request(records, {1, 2, 3}, 500);
  expect(ahead.pending() == 0 && records->requested == at_end, "a closed queue takes records");
}

// Records of one file that follow each other; the first one of each hundred begins elsewhere.
class Adjacent final : public Records {
 public:
  size_t size() const override { return kRecords; }
  bool read(size_t, BufferAllocator&, View&, std::string&) const override { return false; }
  int64_t cost(size_t) const override { return kBytes; }
  ReadAheadOutcome read_ahead(size_t) const override { return {kBytes, false}; }
  bool follows(size_t before, size_t i) const override { return i == before + 1 && i % 100 != 0; }
};

void check_order() {
  const auto records = std::make_shared<Adjacent>();
  ReadAhead ahead(kThreads, kRecords * kBytes);
  for (int64_t first = 0; first < int64_t{kRecords}; first += 10) {
    std::vector<int64_t> samples;
    for (int64_t row = first; row < first + 10; ++row) samples.push_back(row);
    ahead.request(records, std::move(samples), static_cast<uint64_t>(first));
  }
  ahead.request(records, {7, -1, 8, 9, 3}, kRecords);
  const auto is_done = [&] { return ahead.pending() == 0 && ahead.counts().records >= kRecords / 100 + 4; };
  expect(comes_true(is_done), "records that begin elsewhere were not read ahead");
  ahead.close();  // when it returns, no request is in flight
  expect(ahead.counts().records == kRecords / 100 + 4, "records in the order of their file were read ahead");
}

// One thread requests rows, as a consumer does; another asks for numbers; both end in any order with `close`.
void check_races(uint32_t seed) {
  const auto records = std::make_shared<Counted>();
  ReadAhead ahead(kThreads, kMaxBytes);
  Random random{seed};
  std::atomic<bool> ended{false};
  std::thread watcher([&] {
    while (!ended) {
      const ReadAhead::Counts seen = ahead.counts();
      expect(seen.records >= seen.from_disk, "more records from disks than records");
    }
  });
  std::thread closer;
  uint64_t row = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<int64_t> samples(random() % 12);
    for (int64_t& sample : samples) sample = static_cast<int64_t>(random() % (kRecords + 20)) - 10;
    const uint64_t count = samples.size();
    ahead.request(records, std::move(samples), row);
    row += count;
    if (random() % 2) ahead.release(row > 30 ? row - 30 : 0);
    if (random() % 20 == 0) ahead.drop();
    if (turn == kTurns - 20) closer = std::thread([&] { ahead.close(); });
  }
  closer.join();
  ended = true;
  watcher.join();
  expect(ahead.pending() == 0, "records wait in a closed queue");
}

}  // namespace

int main() {
  check_bound();
  check_order();
  for (uint32_t seed = 0; seed < 10; ++seed) check_races(seed);
  return wrong ? 1 : 0;
}
