// SPDX-License-Identifier: Apache-2.0
// `roi_align`: a block has up to 32 channels of a region.
#pragma once
#include "device/own_regions.cuh"

namespace stoker::own {

// Ports: features, boxes, results, and the numbers of samples if there are four. Number: the scale.
template <class Ports, int kLast, int kMax, int kAligned, int kSamples>
struct RoiAlign {
  using T = typename Ports::template At<0>::Memory;
  using Room = roi::Room<T>;

  static void regions(const Row& row, uint32_t block) {
    STOKER_SHARED(Room, room);
    roi::Call call = region_call<T>(row, kLast != 0);
    call.rule.samples = kSamples;
    call.rule.aligned = kAligned != 0;
    const int64_t groups = (call.channels + roi::kGroup - 1) / roi::kGroup, region = quotient(block, groups);
    const RegionNumbers<T> box(row.port(1), region);
    auto* const chosen = row.slot().ports == 4 ? reinterpret_cast<int32_t*>(row.port(3).data) : nullptr;
    roi::align_group<T, int64_t, kMax != 0>(reinterpret_cast<const T*>(row.port(0).data), box.values, region,
                                            block - region * groups, call, reinterpret_cast<T*>(row.port(2).data),
                                            chosen, room);
  }
};

}  // namespace stoker::own
