// SPDX-License-Identifier: Apache-2.0
// `roi_pool`: a thread has a bin of a channel.
#pragma once
#include "device/own_regions.cuh"

namespace stoker::own {

// Ports: features, boxes, results. Number: the scale.
template <class Ports, int kLast>
struct RoiPool {
  using T = typename Ports::template At<0>::Memory;

  static void bins(const Row& row, uint32_t block) {
    const roi::Call call = region_call<T>(row, kLast != 0);
    const int64_t i = int64_t{block} * kThreads + gpu::thread_index();
    if (i >= call.regions * call.channels * call.bins()) return;
    const roi::Place place(i, call);
    const RegionNumbers<T> box(row.port(1), place.region);
    roi::pool_bin(reinterpret_cast<const T*>(row.port(0).data), box.values, place, call,
                  reinterpret_cast<T*>(row.port(2).data), static_cast<int32_t*>(nullptr));
  }
};

}  // namespace stoker::own
