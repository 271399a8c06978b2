// SPDX-License-Identifier: Apache-2.0
// `soft_nms`: one block selects the boxes of a row, one after the other.
#pragma once
#include "device/nms.cuh"
#include "device/own.cuh"
#include "device/own_boxes.cuh"

namespace stoker::own {

// Ports: boxes, scores, labels if there are six ports, numbers of the selected boxes, their scores, their count. Numbers:
// threshold, sigma, least score. A row's memory: labels, boxes, scores, a byte for each box.
template <class Ports, int kGaussian>
struct SoftNms {
  using T = typename Ports::template At<0>::Memory;

  static void select(const Row& row, uint32_t) {
    const Port &given = row.port(0), &scores = row.port(1);
    const int64_t count = given.shape[0];
    const bool labelled = row.slot().ports == 6;
    auto* const labels = row.scratch<int64_t>();
    auto* const boxes = reinterpret_cast<T*>(labels + count);
    T* const left = boxes + 4 * count;
    auto* const is_left = reinterpret_cast<uint8_t*>(left + count);
    for (int64_t i = gpu::thread_index(); i < count; i += detect::kSoftThreads) {
      for (int k = 0; k < 4; ++k) boxes[4 * i + k] = number_at<T>(given, i, k);
      left[i] = number_at<T>(scores, i);
      if (labelled) labels[i] = number_at<int64_t>(row.port(2), i);
    }
    gpu::block_barrier();
    const int outputs = labelled ? 3 : 2;
    const Port& out = row.port(outputs);
    const detect::Decaying rule{kGaussian != 0, row.number(0), row.number(1), row.number(2)};
    const int64_t selected =
        detect::soft<T>(boxes, left, labelled ? labels : nullptr, count, rule, out.shape[0], left, is_left,
                        reinterpret_cast<int64_t*>(out.data), reinterpret_cast<T*>(row.port(outputs + 1).data));
    auto* const to = reinterpret_cast<int64_t*>(out.data);
    for (int64_t i = selected + gpu::thread_index(); i < out.shape[0]; i += gpu::thread_count()) to[i] = -1;
    if (gpu::thread_index() == 0)
      *reinterpret_cast<int32_t*>(row.port(outputs + 2).data) = static_cast<int32_t>(selected);
  }
};

}  // namespace stoker::own
