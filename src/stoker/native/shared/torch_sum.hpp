// SPDX-License-Identifier: Apache-2.0
// Order in which torch adds floats on CPUs, for sums that are not exact. Plain C++ that compiles for the CPU and for a
// GPU.
//
// Values are taken in vectors of `lanes`, four vectors at a time, and each position has an accumulator of its own.
// Remaining whole vectors go to the accumulators of the first of the four, remaining single values to one extra
// accumulator. Then the four accumulators of each lane are added, and the lanes to the extra accumulator. Each of
// several threads takes a share, and the sums of the shares are added in the same way. Sums of bytes in one accumulator
// are exact (max_in_share), so only the last additions round, in this order.
#pragma once
#include <algorithm>
#include <cstdint>

namespace stoker::torch_sum {

constexpr int kWays = 4, kMaxLanes = 16, kMaxThreads = 256;
constexpr int kAccumulators = kWays * kMaxLanes + 1;
constexpr int64_t kGrain = 32768;                          // fewer values than this are summed by one thread
constexpr int64_t kExactBytes = (int64_t{1} << 24) / 255;  // up to this many bytes, every order gives the same sum

struct Order {
  int lanes = 0, threads = 1;
  bool valid() const { return (lanes == 4 || lanes == 8 || lanes == 16) && threads >= 1 && threads <= kMaxThreads; }
};

// Maximum number of bytes in a share: each accumulator stays below 2^24.
inline int64_t max_in_share(int lanes) { return int64_t{kWays} * lanes * 65000; }

// Number of values per thread; the last thread takes the rest.
inline int64_t share_of(int64_t count, const Order& order) {
  if (order.threads < 2 || count < kGrain) return count;
  const int64_t shares = std::min<int64_t>(order.threads, (count + kGrain - 1) / kGrain);
  return (count + shares - 1) / shares;
}

// Assignment of the values of a share of `count` to accumulators; the last accumulator is that of single values.
struct Accumulators {
  Accumulators(int64_t count, int lanes)
      : last(kWays * lanes),
        mask(lanes - 1),
        four(count / (kWays * lanes) * (kWays * lanes)),
        vectors(count / lanes * lanes) {}
  int of(int64_t i) const {
    return i < four ? static_cast<int>(i) & (last - 1) : i < vectors ? static_cast<int>(i) & mask : last;
  }

  int last, mask;
  int64_t four, vectors;  // end of the whole groups of four vectors, and of the whole vectors
};

// Return the sum of a share from its accumulators.
template <class Sum>
inline float folded(const Sum* at, int lanes) {
  float total = static_cast<float>(at[kWays * lanes]);
  for (int lane = 0; lane < lanes; ++lane) {
    float sum = static_cast<float>(at[lane]);
    for (int way = 1; way < kWays; ++way) sum += static_cast<float>(at[way * lanes + lane]);
    total += sum;
  }
  return total;
}

// Return the sum of the shares' sums, one per thread; threads without a share count as zeros. `at` is scratch for
// kAccumulators floats.
inline float folded_shares(const float* sums, int64_t shares, const Order& order, float* at) {
  if (shares == 1 && order.threads == 1) return sums[0];
  const int lanes = order.threads < order.lanes ? 1 : order.lanes;  // fewer than a vector are added one by one
  const Accumulators places(order.threads, lanes);
  for (int i = 0; i < kAccumulators; ++i) at[i] = 0.0f;
  for (int i = 0; i < shares; ++i) at[places.of(i)] += sums[i];
  return folded(at, lanes);
}

}  // namespace stoker::torch_sum
