// SPDX-License-Identifier: Apache-2.0
// Work of a step for all rows of a batch together, before the step runs for any of them.
#include <algorithm>

#include "base/float_mode.hpp"
#include "run/engine.hpp"
#include "run/sizes.hpp"

namespace stoker {

void Engine::combine_rows(Job* job, const Segment& segment) {
  const FloatMode mode;  // the thread may be the application's
  for (const int32_t s : segment.steps)
    if (plan_->steps[static_cast<size_t>(s)].combined >= 0) combine_rows(job, s);
}

// Rows that fail before the step's kernel, because of their numbers or a check, are left out: they fail when they run.
void Engine::combine_rows(Job* job, int32_t index) {
  const Step& step = plan_->steps[static_cast<size_t>(index)];
  double* const registers = job->registers.data();
  std::string error;
  CombineCall call{{}, {}, step.params.size(), &job->combined[static_cast<size_t>(step.combined)], nullptr, &error};
  std::vector<int64_t> rows;
  int32_t why = -1;
  try {
    for (int64_t r = 0; r < job->rows; ++r) {
      if (job->failed[r] || !active(job, r, step)) continue;
      if (evaluate(step.scalars, job->row(r), 0, registers) >= 0) continue;
      const auto holds = [&](const Check& check) { return registers[check.condition] != 0; };
      if (!std::all_of(step.checks.begin(), step.checks.end(), holds)) continue;
      const View& in = job->row(r)[step.in[static_cast<size_t>(step.other_rows_of)]];
      rows.push_back(r);
      call.in.push_back(step.on_device ? job->on_device->on_device(in) : in);
      for (const int32_t p : step.params) call.params.push_back(registers[p]);
    }
    if (step.on_device) call.memory = job->on_device.get();
    if (rows.empty() || step.kernel->combine(call)) return;
  } catch (const std::bad_alloc& failure) {
    why = code_of(failure);
    error = no_memory(failure);
  } catch (const gpu::DeviceFailure& failure) {
    why = kDeviceFailed;
    error = failure.what();
  }
  for (const int64_t r : rows) add_error(job, {r, index, why, {}, error});
}

}  // namespace stoker
