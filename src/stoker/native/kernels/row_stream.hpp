// SPDX-License-Identifier: Apache-2.0
// Random numbers of a row, for kernels that draw.
#pragma once
#include <cstdint>

#include "shared/philox.hpp"
#include "run/job.hpp"

namespace stoker {

// Name of a node's draws: the number of the graph's random call, and the seed that replaces the pipeline's, if any.
struct DrawName {
  uint32_t draw;
  bool own_seed = false;
  uint64_t seed = 0;

  uint64_t epoch_key(const Call& c) const {
    return own_seed ? philox::epoch_key(seed, c.job.epochs[c.row]) : c.job.epoch_keys[c.row];
  }
  philox::Stream of(const Call& c) const { return {epoch_key(c), c.job.keys[c.row], draw}; }
};

// Return a number from 0 to count - 1.
inline int64_t draw_below(philox::Stream* s, int64_t count) {
  const auto k = static_cast<int64_t>(s->uniform() * static_cast<double>(count));
  return k < count ? k : count - 1;
}

constexpr const char *kDrawId = "which of the graph's random calls",
                     *kOwnSeed = "whether `seed` replaces the pipeline's";

}  // namespace stoker
