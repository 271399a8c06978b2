// SPDX-License-Identifier: Apache-2.0
// Processing order of rows: the largest first, so that all threads end at about the same time, since a segment ends
// with its last row. The order only affects the time. With prefetched batches nothing is gained, because threads
// continue with the next batch; when the consumer waits for a batch, the gain grows as the number of rows per thread
// decreases.
#include <algorithm>
#include <numeric>

#include "run/job.hpp"

namespace stoker {

void order_rows(const Segment& segment, Job* job) {
  const Plan& plan = *job->plan;
  if (job->inlined || segment.kind == SegmentKind::Python || job->rows < 3 || plan.costs.size() + plan.fed.size() == 0)
    return;
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
  std::sort(job->order.begin(), job->order.end(),
            [&costs](int64_t a, int64_t b) { return costs[a] != costs[b] ? costs[a] > costs[b] : a < b; });
}

}  // namespace stoker
