// SPDX-License-Identifier: Apache-2.0
// The largest rows first, so that threads end together: a segment is over when its last row is. Nothing but the time
// depends on the order. Where batches are made ahead, threads go on with the next one instead of waiting, and it gains
// nothing; where a batch is waited for, it does, the more, the fewer rows a thread has.
#include <algorithm>
#include <numeric>

#include "engine.hpp"

namespace stoker {

void order_rows(const Segment& segment, Job* job) {
  const Plan& plan = *job->plan;
  if (job->inlined || segment.runs == Runs::Python || job->rows < 3 || plan.costs.size() + plan.fed.size() == 0) return;
  const size_t rows = static_cast<size_t>(job->rows);
  job->costs.assign(rows, 0);
  for (size_t r = 0; r < rows; ++r) {
    const int64_t row = static_cast<int64_t>(r);
    for (const int32_t s : plan.costs) job->costs[r] += plan.steps[s].kernel->cost(*job, row);
    for (const int32_t v : plan.fed) job->costs[r] += static_cast<double>(job->row(row)[v].elements());
  }
  const auto& costs = job->costs;
  if (std::equal(costs.begin() + 1, costs.end(), costs.begin())) return;
  job->order.resize(rows);
  std::iota(job->order.begin(), job->order.end(), int64_t{0});
  std::sort(job->order.begin(), job->order.end(), [&costs](int64_t a, int64_t b) {
    return costs[a] != costs[b] ? costs[a] > costs[b] : a < b;
  });
}

}  // namespace stoker
