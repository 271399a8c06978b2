// SPDX-License-Identifier: Apache-2.0
// `box_encoder`: the best anchor of each box by one block, then the best box of each anchor by one thread.
#pragma once
#include "device/own.cuh"
#include "shared/box_encoding.hpp"

namespace stoker::own {

// Ports: boxes, labels, anchors, targets, their labels. Numbers: the IoU that a match exceeds, the scale, four means, four
// deviations. A row's memory: the best anchor of each box.
template <class Ports, int kOffsets>
struct BoxEncoder {
  static constexpr int kThreads = 256;
  using Best = Array<float, kThreads>;
  using Place = Array<int32_t, kThreads>;

  static box_encoding::Box box_at(const Port& port, int64_t i) {
    const auto* p = reinterpret_cast<const uint8_t*>(port.data) + i * port.stride[0];
    const auto at = [&](int k) { return *reinterpret_cast<const float*>(p + k * port.stride[1]); };
    return {at(0), at(1), at(2), at(3)};
  }

  static void boxes(const Row& row, uint32_t block) {
    STOKER_SHARED(Best, best);
    STOKER_SHARED(Place, place);
    const Port& anchors = row.port(2);
    const box_encoding::Box box = box_at(row.port(0), block);
    const auto thread = static_cast<int>(gpu::thread_index());
    float largest = -1;
    int32_t own = 0;
    for (int64_t m = thread; m < anchors.shape[0]; m += gpu::thread_count()) {
      const float iou = box_encoding::overlap(box, box_at(anchors, m));
      if (iou >= largest) {
        largest = iou;
        own = static_cast<int32_t>(m);
      }
    }
    best[thread] = largest;
    place[thread] = own;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      gpu::block_barrier();
      if (thread >= half) continue;
      const float other = best[thread + half];
      const int32_t there = place[thread + half];
      if (other > best[thread] || (other == best[thread] && there > place[thread])) {
        best[thread] = other;
        place[thread] = there;
      }
    }
    if (thread == 0) row.scratch<int32_t>()[block] = place[0];
  }

  static void anchors(const Row& row, uint32_t block) {
    const Port &boxes = row.port(0), &labels = row.port(1), &anchors = row.port(2);
    const int64_t m = int64_t{block} * kThreads + gpu::thread_index();
    if (m >= anchors.shape[0]) return;
    const auto* own = row.scratch<int32_t>();
    const box_encoding::Box anchor = box_at(anchors, m);
    float best = -1;
    int64_t taken = 0;
    for (int64_t i = 0; i < boxes.shape[0]; ++i) {
      const float iou = own[i] == m ? 2.0f : box_encoding::overlap(box_at(boxes, i), anchor);
      if (iou >= best) {
        best = iou;
        taken = i;
      }
    }
    const box_encoding::Centred base = centred(anchor);
    box_encoding::Centred target = base;
    int32_t label = 0;
    if (best > static_cast<float>(row.number(0))) {
      target = centred(box_at(boxes, taken));
      if constexpr (kOffsets != 0) {
        box_encoding::Scheme scheme{static_cast<float>(row.number(1)), {}, {}};
        for (int k = 0; k < 4; ++k) {
          scheme.mean[k] = static_cast<float>(row.number(2 + k));
          scheme.deviation[k] = static_cast<float>(row.number(6 + k));
        }
        target = offsets(target, base, scheme);
      }
      label =
          *reinterpret_cast<const int32_t*>(reinterpret_cast<const uint8_t*>(labels.data) + taken * labels.stride[0]);
    } else if (kOffsets != 0) {
      target = {};
    }
    float* out = reinterpret_cast<float*>(row.port(3).data) + 4 * m;
    out[0] = target.x;
    out[1] = target.y;
    out[2] = target.width;
    out[3] = target.height;
    reinterpret_cast<int32_t*>(row.port(4).data)[m] = label;
  }
};

}  // namespace stoker::own
