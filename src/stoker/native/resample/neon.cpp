// SPDX-License-Identifier: Apache-2.0
// NEON kernels of 8-bit resampling. The multiply-add instruction has 32-bit lanes, so weights are not split.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "resample/kernels.hpp"
#include "resample/shuffles.hpp"
#include "shared/half.hpp"

namespace stoker::resample {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"
#include "base/vectors_neon.ipp"

struct Taps {
  explicit Taps(int channels) {
    for (int t = 0; t < 4; ++t) tap[t] = vld1q_u8(kShuffles[channels].tap[t]);
  }
  uint8x16_t tap[4];
};

class Sums {
 public:
  void add(uint32x4_t x, uint32x4_t weight) { sum_ = vmlaq_u32(sum_, x, weight); }
  template <int kTap>
  void add(uint32x4_t x, uint32x4_t weights) {
    sum_ = vmlaq_laneq_u32(sum_, x, weights, kTap);
  }
  template <int kTap>
  void add(uint32x4_t x, uint32x2_t weights) {
    sum_ = vmlaq_lane_u32(sum_, x, weights, kTap);
  }
  void add_pixels(uint8x16_t x, const Taps& taps, const uint32_t* w) {
    const uint32x4_t weights = vld1q_u32(w);
    add<0>((uint32x4_t)vqtbl1q_u8(x, taps.tap[0]), weights);
    add<1>((uint32x4_t)vqtbl1q_u8(x, taps.tap[1]), weights);
    add<2>((uint32x4_t)vqtbl1q_u8(x, taps.tap[2]), weights);
    add<3>((uint32x4_t)vqtbl1q_u8(x, taps.tap[3]), weights);
  }
  void add_lanes(uint32x4_t x, const uint32_t* w) {
    const uint32x4_t byte = vdupq_n_u32(255);
    add(vandq_u32(x, byte), vld1q_u32(w));
    add(vandq_u32(vshrq_n_u32(x, 8), byte), vld1q_u32(w + kBlock));
    add(vandq_u32(vshrq_n_u32(x, 16), byte), vld1q_u32(w + 2 * kBlock));
    add(vshrq_n_u32(x, 24), vld1q_u32(w + 3 * kBlock));
  }
  V<int32_t> value() const { return (V<int32_t>)sum_ >> kWeightBits; }

 private:
  uint32x4_t sum_ = vdupq_n_u32(kFixedHalf);
};

class Columns {
 public:
  void add_pair(uint8x16_t a, uint8x16_t b, const uint32_t* w) {
    const uint32x2_t weights = vld1_u32(w);
    add<0>(a, weights);
    add<1>(b, weights);
  }
  V<uint8_t> bytes() const {
    return pack_bytes(sums_[0].value(), sums_[1].value(), sums_[2].value(), sums_[3].value());
  }

 private:
  template <int kTap>
  void add(uint8x16_t x, uint32x2_t weights) {
    const uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_high_u8(x);
    sums_[0].add<kTap>(vmovl_u16(vget_low_u16(low)), weights);
    sums_[1].add<kTap>(vmovl_high_u16(low), weights);
    sums_[2].add<kTap>(vmovl_u16(vget_low_u16(high)), weights);
    sums_[3].add<kTap>(vmovl_high_u16(high), weights);
  }
  Sums sums_[4];
};

inline uint32x4_t gather_lanes(const uint8_t* p, V<int32_t> start) {
  uint32_t lane[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&lane[i], p + start[i], sizeof lane[i]);
  return uint32x4_t{lane[0], lane[1], lane[2], lane[3]};
}
inline void store_saturated(uint8_t* p, V<int32_t> x) {
  const uint32_t bytes = vgetq_lane_u32((uint32x4_t)pack_bytes(x, x, x, x), 0);
  std::memcpy(p, &bytes, sizeof bytes);
}

#include "resample/rows.ipp"

}  // namespace

const Kernels kNeonKernels{Packing::Whole, true, horizontal_any, vertical_any, nullptr, nullptr, nullptr, nullptr};

}  // namespace stoker::resample
#endif
