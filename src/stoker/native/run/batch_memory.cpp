// SPDX-License-Identifier: Apache-2.0
#include "run/batch_memory.hpp"

#include <algorithm>

#include "run/job.hpp"

namespace stoker {

namespace {

std::string expected(Side side, const BatchLimits& limits) {
  return "expected at most " + std::to_string(limits.of(side)) + " bytes of " +
         (side == Side::Host ? "memory" : "GPU memory") + " for a batch (`max_batch_bytes`), got ";
}

// Return whether the sum exceeds the limit; it may exceed 64 bits.
bool exceeds(uint64_t a, uint64_t b, uint64_t limit) { return a > limit || b > limit - a; }

}  // namespace

void BatchMemory::begin(int64_t rows, const BatchLimits& limits) {
  limits_ = limits;
  rows_ = rows;
  refused_.store(false, std::memory_order_relaxed);
  for (const Side side : {Side::Host, Side::Device}) {
    Count& c = count(side);
    c.all.store(0, std::memory_order_relaxed);
    if (is_limited(side)) c.by_row.assign(static_cast<size_t>(rows), 0);
  }
}

void BatchMemory::refuse_row(Side side, int64_t row, uint64_t bytes) const {
  throw BatchLimitReached(kRowTooLarge, row, expected(side, limits_) + std::to_string(bytes) + " for this row alone");
}

// Rows that come after the first refusal only stop: one error names the row.
void BatchMemory::refuse_batch(Side side, int64_t row, uint64_t of_row, uint64_t bytes) {
  if (refused_.exchange(true)) throw BatchLimitReached(kGivenUp, row, "the batch takes too much memory");
  throw BatchLimitReached(
      kBatchTooLarge, row,
      expected(side, limits_) + std::to_string(bytes) + ", of them " + std::to_string(of_row) + " for this row");
}

void BatchMemory::require_row(Side side, int64_t row, uint64_t bytes) const {
  if (!is_limited(side)) return;
  const uint64_t before = count(side).by_row[static_cast<size_t>(row)];
  if (exceeds(before, bytes, limits_.of(side))) refuse_row(side, row, before + bytes);
}

void BatchMemory::charge_limited(Side side, int64_t row, uint64_t bytes) {
  require_row(side, row, bytes);
  Count& c = count(side);
  const uint64_t before = c.all.fetch_add(bytes, std::memory_order_relaxed);
  std::atomic_ref<uint64_t>(c.by_row[static_cast<size_t>(row)]).fetch_add(bytes, std::memory_order_relaxed);
  if (!exceeds(before, bytes, limits_.of(side))) return;
  // The row with the most memory is named, and not the one that happened to come last.
  uint64_t most = 0;
  for (size_t r = 0; r < c.by_row.size(); ++r) {
    const uint64_t own = std::atomic_ref<uint64_t>(c.by_row[r]).load(std::memory_order_relaxed);
    if (own > most) most = own, row = static_cast<int64_t>(r);
  }
  refuse_batch(side, row, most, before + bytes);
}

void BatchMemory::charge_output(Side side, const std::vector<uint64_t>& by_row, uint64_t bytes) {
  if (!is_limited(side) || by_row.empty()) return;
  Count& c = count(side);
  size_t largest = 0;
  for (size_t r = 0; r < by_row.size(); ++r) {
    c.by_row[r] += by_row[r];
    if (c.by_row[r] > c.by_row[largest]) largest = r;
  }
  const uint64_t before = c.all.fetch_add(bytes, std::memory_order_relaxed);
  if (exceeds(before, bytes, limits_.of(side)))
    refuse_batch(side, static_cast<int64_t>(largest), c.by_row[largest], before + bytes);
}

}  // namespace stoker
