// SPDX-License-Identifier: Apache-2.0
// How torch adds up floats on CPUs, where the sum is not exact: plain C++ that compiles for the CPU and for a GPU.
//
// Values are taken in vectors of `lanes`, four vectors beside each other, each position into a sum of its own; whole
// vectors that are left go to the first four's, single values to a sum by themselves. Then the four of each lane are added,
// and the lanes to the single values. Several threads take a share each, and their sums are added in the same way.
// Sums of bytes at one position are exact (kMostInOrder), so that only the last additions round, in this order.
#pragma once
#include <algorithm>
#include <cstdint>

namespace stoker::torch_sum {

constexpr int kWays = 4, kMostLanes = 16, kMostThreads = 256;
constexpr int kPlaces = kWays * kMostLanes + 1;
constexpr int64_t kGrain = 32768;  // fewer values are one thread's
constexpr int64_t kExactBytes = (int64_t{1} << 24) / 255;  // up to so many, any order gives the sum

struct Order {
  int lanes = 0, threads = 1;
  bool valid() const {
    return (lanes == 4 || lanes == 8 || lanes == 16) && threads >= 1 && threads <= kMostThreads;
  }
};

// Bytes that a share may have: sums of one position stay below 2^24.
inline int64_t most_in_share(int lanes) { return int64_t{kWays} * lanes * 65000; }

// How many values each thread takes; the last one has what is left.
inline int64_t share_of(int64_t count, const Order& order) {
  if (order.threads < 2 || count < kGrain) return count;
  const int64_t shares = std::min<int64_t>(order.threads, (count + kGrain - 1) / kGrain);
  return (count + shares - 1) / shares;
}

// Where the values of a share of `count` are added; the last place is that of single values.
struct Places {
  Places(int64_t count, int lanes)
      : last(kWays * lanes), mask(lanes - 1), four(count / (kWays * lanes) * (kWays * lanes)), vectors(count / lanes * lanes) {}
  int of(int64_t i) const {
    return i < four ? static_cast<int>(i) & (last - 1) : i < vectors ? static_cast<int>(i) & mask : last;
  }

  int last, mask;
  int64_t four, vectors;  // up to where whole fours, and whole vectors, are
};

// The sum of a share from those of its places.
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

// The sum of the shares' sums, one per thread; threads that have none count as zeros. `at`: kPlaces to work in.
inline float folded_shares(const float* sums, int64_t shares, const Order& order, float* at) {
  if (shares == 1 && order.threads == 1) return sums[0];
  const int lanes = order.threads < order.lanes ? 1 : order.lanes;  // fewer than a vector are taken one by one
  const Places places(order.threads, lanes);
  for (int i = 0; i < kPlaces; ++i) at[i] = 0.0f;
  for (int i = 0; i < shares; ++i) at[places.of(i)] += sums[i];
  return folded(at, lanes);
}

}  // namespace stoker::torch_sum
