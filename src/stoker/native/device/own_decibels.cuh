// SPDX-License-Identifier: Apache-2.0
// Decibels of every element.
#pragma once
#include "device/own.cuh"
#include "shared/one_lane.hpp"
#include "shared/xmath_float.hpp"

namespace stoker::own {

// Ports: data, reference, output. Numbers: the factor of log2, the smallest ratio.
template <class Ports>
struct Decibels {
  static constexpr int64_t kElements = 8192;  // of a block; also in ops/audio/to_decibels.py

  static void convert(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &y = row.port(2);
    float reference = *reinterpret_cast<const float*>(row.port(1).data);
    if (reference == 0.0f) reference = 1.0f;
    const auto factor = static_cast<float>(row.number(0)), floor = static_cast<float>(row.number(1));
    const float scale = 1.0f / reference;
    int64_t elements = 1;
    for (int d = 0; d < y.rank; ++d) elements *= y.shape[d];
    const int64_t begin = block * kElements, end = begin + kElements < elements ? begin + kElements : elements;
    auto* to = reinterpret_cast<float*>(y.data);
    int64_t at = begin;
    if (is_contiguous(x, sizeof(float))) {
      constexpr int kEach = 8;  // numbers that a thread loads before it computes the first
      const auto* from = reinterpret_cast<const float*>(x.data) + gpu::thread_index();
      float* const first = to + gpu::thread_index();
      STOKER_NO_UNROLL for (; at + kEach * kThreads <= end; at += kEach * kThreads) {
        float found[kEach];
        STOKER_UNROLL for (int k = 0; k < kEach; ++k) found[k] = from[at + k * kThreads] * scale;
        STOKER_UNROLL for (int k = 0; k < kEach; ++k) first[at + k * kThreads] =
            xm::log2f<xm::OneLane>(found[k] < floor ? floor : found[k]) * factor;
      }
    }
    for (int64_t i = at + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t offset = offset_of(x, i);
      const float v = *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(offset)) * scale;
      to[i] = xm::log2f<xm::OneLane>(v < floor ? floor : v) * factor;
    }
  }
};

}  // namespace stoker::own
