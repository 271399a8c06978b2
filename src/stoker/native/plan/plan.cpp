// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <algorithm>

#include "plan/check.hpp"

namespace stoker {

void Plan::finish() {
  if (finished) throw InvalidPlan("expected a plan that is finished once");
  check(*this);
  device_begin = segments.size();
  for (size_t i = 0; i < segments.size(); ++i) {
    for (const int32_t s : segments[i].steps) segments[i].ordered |= steps[s].ordered;
    if (segments[i].ordered) ordered_end = i + 1;
    if (segments[i].kind == SegmentKind::Device) device_begin = std::min(device_begin, i);
    for (const int32_t s : segments[i].steps) {
      Step& step = steps[s];
      if (step.other_rows_of >= 0 && segments[i].kind == SegmentKind::Device) device_exchange_end = i;
      if (!step.kernel || !step.kernel->combines()) continue;
      step.combined = combining++;
      segments[i].combines = true;
    }
  }
  for (Step& s : steps) {
    registers = std::max(registers, s.scalars.code.size());
    parameters = std::max(parameters, s.params.size());
    if (s.kernel && s.kernel->has_cost()) costs.push_back(static_cast<int32_t>(&s - steps.data()));
    for (const int32_t o : s.out) {
      Value& v = values[static_cast<size_t>(o)];
      v.is_constant = s.kernel && s.kernel->aliases() && s.in.empty() && v.storage == Storage::Alias;
    }
  }
  for (Value& v : values) {
    needs_device |= v.storage >= Storage::Upload;
    if (v.storage == Storage::Batch) v.small = small++;
  }
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].storage != Storage::Input) continue;
    inputs.push_back(static_cast<int32_t>(v));
    if (values[v].rank == 1) fed.push_back(static_cast<int32_t>(v));
  }
  needs_device |= device_begin < segments.size();
  if (!segments.empty()) {
    const auto fixed = [this](int32_t o) {
      const Output& output = outputs[static_cast<size_t>(o)];
      return output.fixed || output.root >= 0;
    };
    const Segment& first = segments[0];
    rows_find_inputs = first.kind != SegmentKind::Python &&
                       std::all_of(first.opens.begin(), first.opens.end(), fixed) && costs.empty() && fed.empty() &&
                       !reads_other_rows;
  }
  for (Output& o : outputs) {
    registers = std::max(registers, o.scalars.code.size());
    for (size_t s = 0; s < steps.size() && o.root >= 0; ++s)
      if (std::find(steps[s].out.begin(), steps[s].out.end(), o.root) != steps[s].out.end())
        o.maker = static_cast<int32_t>(s);
    places_rows |= o.root >= 0;
  }
  finished = true;
}

}  // namespace stoker
