// SPDX-License-Identifier: Apache-2.0
// Regions of one image for the operators that pool them.
#pragma once
#include "device/own.cuh"
#include "device/own_boxes.cuh"
#include "device/roi.cuh"

namespace stoker::own {

// A region as the kernels of roi.cuh take it: of the first map.
template <class T>
struct RegionNumbers {
  T values[5];
  RegionNumbers(const Port& boxes, int64_t i) : values{} {
    for (int k = 0; k < 4; ++k) values[k + 1] = number_at<T>(boxes, i, k);
  }
};

// The call of a row with ports features [C,H,W], boxes [N,4], and results [N,C,h,w], or [N,h,w,C] if `last`.
template <class T>
inline roi::Call region_call(const Row& row, bool last) {
  const Port &features = row.port(0), &boxes = row.port(1), &out = row.port(2);
  roi::Call call;
  const auto step = [&](int axis) { return features.stride[axis] / static_cast<int64_t>(sizeof(T)); };
  call.regions = boxes.shape[0];
  call.maps = 1;
  call.channels = features.shape[0];
  call.height = features.shape[1];
  call.width = features.shape[2];
  call.map_step = 0;
  call.channel_step = step(0);
  call.row_step = step(1);
  call.column_step = step(2);
  call.channels_last = call.column_step != 1;
  call.pooled_last = last;
  call.rule = {row.number(0), out.shape[last ? 1 : 2], out.shape[last ? 2 : 3], 0, false};
  return call;
}

}  // namespace stoker::own
