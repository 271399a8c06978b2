// SPDX-License-Identifier: Apache-2.0
// `box_iou`: a thread computes the overlap of a pair.
#pragma once
#include "device/own.cuh"
#include "device/own_boxes.cuh"
#include "shared/pair_overlap.hpp"
#include "shared/rotated_box.hpp"

namespace stoker::own {

constexpr int kOverlapOfRotated = 4;  // else an Overlap; also in ops/detection/box_iou.py

// Ports: two sets of boxes, their overlaps.
template <class Ports, int kKind>
struct BoxIou {
  using T = typename Ports::template At<0>::Memory;

  static detect::Corners<T> corners(const Port& boxes, int64_t i) {
    return {number_at<T>(boxes, i, 0), number_at<T>(boxes, i, 1), number_at<T>(boxes, i, 2), number_at<T>(boxes, i, 3)};
  }
  static detect::RotatedBox rotated(const Port& boxes, int64_t i) {
    double numbers[5];
    for (int k = 0; k < 5; ++k) numbers[k] = static_cast<double>(number_at<T>(boxes, i, k));
    return detect::RotatedBox(numbers);
  }

  static void pairs(const Row& row, uint32_t block) {
    const Port &a = row.port(0), &b = row.port(1);
    const int64_t pair = int64_t{block} * kThreads + gpu::thread_index();
    if (pair >= a.shape[0] * b.shape[0]) return;
    const int64_t i = quotient(pair, b.shape[0]), j = pair - i * b.shape[0];
    auto* const to = reinterpret_cast<T*>(row.port(2).data) + pair;
    if constexpr (kKind == kOverlapOfRotated) *to = static_cast<T>(overlap_of(rotated(a, i), rotated(b, j)));
    else *to = detect::pair_overlap(corners(a, i), corners(b, j), static_cast<detect::Overlap>(kKind));
  }
};

}  // namespace stoker::own
