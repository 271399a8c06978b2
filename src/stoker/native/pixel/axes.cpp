// SPDX-License-Identifier: Apache-2.0
// Iteration space of a bound program: which axes the views share, the order of the axes, and which axis becomes the
// lanes.
#include <algorithm>
#include <cstdlib>

#include "base/sort_few.hpp"
#include "pixel/pixel.hpp"

namespace stoker::pixel {

namespace {

// Estimated cycles per lane if this axis becomes the lanes.
double lane_cost(const Axis& axis, const int64_t* element, int ports) {
  double cost = 30.0 / static_cast<double>(axis.extent);
  for (int p = 0; p < ports; ++p) {
    const int64_t s = axis.stride[p] < 0 ? -axis.stride[p] : axis.stride[p];
    cost += s == element[p] ? 0.15 : s == 0 ? 0.1 : s <= 4 * element[p] ? 0.6 : 1.5;
  }
  return cost;
}

}  // namespace

bool mergeable(const Axis& outer, const Axis& inner, int ports) {
  for (int p = 0; p < ports; ++p)
    if (outer.stride[p] != inner.stride[p] * inner.extent) return false;
  return true;
}

int merge_axes(Axis* axes, int count, int ports, int lead) {
  const auto magnitude = [&](const Axis& a) { return std::abs(a.stride[lead]); };
  sort_few(axes, axes + count, [&](const Axis& x, const Axis& y) { return magnitude(x) > magnitude(y); });
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (kept > 0 && mergeable(axes[kept - 1], axes[i], ports)) {
      const int64_t extent = axes[kept - 1].extent * axes[i].extent;
      axes[kept - 1] = axes[i];
      axes[kept - 1].extent = extent;
    } else {
      axes[kept++] = axes[i];
    }
  }
  return kept;
}

// Orient the axis so that the first output that moves along it moves forward (without such an output, the first input):
// inputs are mostly narrower than outputs, so that reversing them is cheaper.
void Bound::turn(Axis& axis) {
  int lead = inputs_;
  while (lead < ports_ && axis.stride[lead] == 0) ++lead;
  if (lead == ports_)
    for (lead = 0; lead < inputs_ && axis.stride[lead] == 0;) ++lead;
  if (lead == ports_ || axis.stride[lead] >= 0 || axis.extent == 0) return;
  for (int p = 0; p < ports_; ++p) {
    const int64_t way = (axis.extent - 1) * axis.stride[p];
    base_[p] += way;
    if (p == 0) input0_offset_ += way;
    axis.stride[p] = -axis.stride[p];
  }
}

void Bound::bind_axes(const View* inputs, const View* outputs, bool rows) {
  const auto view = [&](int p) -> const View& { return p < inputs_ ? inputs[p] : outputs[p - inputs_]; };
  const int rank = outputs[0].rank;
  int64_t element[2 * kMaxPorts];
  for (int p = 0; p < ports_; ++p) {
    element[p] = size_of(view(p).dtype);
    base_[p] = view(p).data;
    channel_stride_[p] = channelled_ ? view(p).stride[rank - 1] : 0;
  }
  row_axis_ = Axis{};
  input0_offset_ = 0;
  axes_count_ = 0;
  for (int i = 0; i < rank - (channelled_ ? 1 : 0); ++i) {
    Axis axis;
    axis.extent = outputs[0].shape[i];
    for (int p = 0; p < ports_; ++p) axis.stride[p] = view(p).stride[i];
    if (rows && i == 0) {
      row_axis_ = axis;
    } else if (axis.extent != 1) {
      turn(axis);
      axes_[axes_count_++] = axis;
    }
  }
  axes_count_ = merge_axes(axes_, axes_count_, ports_, inputs_);
  if (axes_count_ == 0) {
    axes_[axes_count_++] = Axis{};
    for (int p = 0; p < ports_; ++p) axes_[0].stride[p] = element[p];  // a single lane is contiguous
  }
  int best = axes_count_ - 1;
  for (int i = 0; i < axes_count_; ++i)
    if (lane_cost(axes_[i], element, ports_) < lane_cost(axes_[best], element, ports_)) best = i;
  std::rotate(axes_ + best, axes_ + best + 1, axes_ + axes_count_);
}

int64_t Bound::lanes() const {
  int64_t n = row_axis_.extent;
  for (int i = 0; i < axes_count_; ++i) n *= axes_[i].extent;
  return n;
}

}  // namespace stoker::pixel
