// SPDX-License-Identifier: Apache-2.0
// Weighted sums of bytes by tensor cores.
//
// The sum of bytes with signed weights of 22 bits is a product of byte matrices. The three bytes of the weights, of
// which the highest is signed, give three products, which are combined as integers, so the sums are exact. One
// instruction (mma.m16n8k32) computes 16 outputs by 8 lines from 32 positions. Its operands are distributed over a
// warp's registers as follows, with g = lane / 4 and t = lane % 4:
//   weights    rows g and g + 8 (outputs), columns 4t + [0, 4) and 16 + 4t + [0, 4) (positions)
//   bytes      rows 4t + [0, 4) and 16 + 4t + [0, 4) (positions), column g (lines)
//   products   rows g and g + 8, columns 2t and 2t + 1
// Positions without a weight are multiplied with zeros, whatever their bytes are.
#pragma once
#include "device/stage_sample.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Load the words of a group if `wanted` is set, else zeros. Each word is loaded separately: a vector load needs
// consecutive registers, while the matrix product needs its operands in other registers, so that each word would be
// copied.
inline void load_group(bool wanted, const WeightGroup* from, uint32_t& low, uint32_t& middle, uint32_t& high) {
  low = middle = high = 0;
#if defined(__CUDA_ARCH__)
  asm("{ .reg .pred p; setp.ne.u32 p, %4, 0;\n"
      " @p ld.global.nc.u32 %0, [%3]; @p ld.global.nc.u32 %1, [%3 + 4]; @p ld.global.nc.u32 %2, [%3 + 8]; }"
      : "+r"(low), "+r"(middle), "+r"(high)
      : "l"(from), "r"(static_cast<uint32_t>(wanted)));
#else
  if (wanted) low = from->low, middle = from->middle, high = from->high;
#endif
}

// A thread's part of the weights of 16 outputs.
class Bands {
 public:
  struct Band {
    uint32_t low[4], middle[4], high[4];
  };

  // `last_output` is the last output of the axis.
  Bands(int32_t last_output, uint64_t taps_at, uint64_t weights_at, int64_t pitch, int32_t output)
      : pitch_(static_cast<uint32_t>(pitch)) {
    const auto* taps = array_at<resample::Taps>(taps_at);
    const auto last = static_cast<uint32_t>(last_output), first = static_cast<uint32_t>(output);
    const resample::Taps a = taps[first], b = taps[first + 15 < last ? first + 15 : last];
    begin_ = (a.start < b.start ? a.start : b.start) >> 2;  // either is the smaller one, depending on mirroring
    const int32_t end = a.start + a.count > b.start + b.count ? a.start + a.count : b.start + b.count;
    groups_ = ((end + 3) >> 2) - begin_;
    const uint32_t lane = gpu::thread_index() % gpu::kWarp;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t o = first + lane / 4 + 8 * r;
      const resample::Taps t = taps[o < last ? o : last];
      start_[r] = (t.start >> 2) - static_cast<int32_t>(lane % 4);
      count_[r] = o <= last && t.count > 0 ? static_cast<uint32_t>((t.start + t.count + 3) >> 2) - (t.start >> 2) : 0;
      weights_[r] = array_at<WeightGroup>(weights_at) + (o < last ? o : last) * pitch_;
    }
  }
  int32_t begin() const { return begin_; }    // first group of four positions with a weight
  int32_t groups() const { return groups_; }  // number of groups up to the last one with a weight

  // Load the weights of positions [32 block, 32 block + 32) from begin() on.
  void load(int32_t block, Band& band) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i % 2;
      const auto group = static_cast<uint32_t>(begin_ + 8 * block + 4 * (i / 2) - start_[r]);
      load_group(group < count_[r], weights_[r] + group, band.low[i], band.middle[i], band.high[i]);
    }
  }

 private:
  uint32_t pitch_, count_[2];
  int32_t begin_, groups_, start_[2];
  const WeightGroup* weights_[2];
};

// Weighted sums of one channel: two outputs of each of the thread's two rows.
struct Sums {
  uint32_t value[4];

  // Add the products over one or two blocks of positions.
  void add(const Bands::Band& w, const uint32_t (&bytes)[2], bool more, const Bands::Band& w2,
           const uint32_t (&bytes2)[2]) {
    int32_t low[4] = {}, middle[4] = {}, high[4] = {kHalf, kHalf, kHalf, kHalf};
    gpu::multiply_bytes<false>(low, w.low, bytes);
    gpu::multiply_bytes<false>(middle, w.middle, bytes);
    gpu::multiply_bytes<true>(high, w.high, bytes);
    if (more) {
      gpu::multiply_bytes<false>(low, w2.low, bytes2);
      gpu::multiply_bytes<false>(middle, w2.middle, bytes2);
      gpu::multiply_bytes<true>(high, w2.high, bytes2);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      value[i] = (static_cast<uint32_t>(high[i]) << 16) + (static_cast<uint32_t>(middle[i]) << 8) +
                 static_cast<uint32_t>(low[i]) + (resample::kFixedHalf - (static_cast<uint32_t>(kHalf) << 16));
  }
  // Both outputs of row g + 8 r as bytes.
  uint32_t pair(int r) const { return gpu::saturated_pair(pixel(2 * r), pixel(2 * r + 1)); }
  int32_t pixel(int i) const { return static_cast<int32_t>(value[i]) >> resample::kWeightBits; }

 private:
  // Start value of the highest bytes' products, which contains the rounding half so that it need not be added to each
  // sum. It takes four registers, which are only available on compute capability 9.x, and not where a kernel's source
  // uses them otherwise.
#if defined(STOKER_REGISTERS_TAKEN) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 100 != 9)
  static constexpr int32_t kHalf = 0;
#else
  static constexpr int32_t kHalf = resample::kFixedHalf >> 16;
#endif
};

// Compute a warp's weighted sums over sets of eight lines, numbered from `set` to `sets` in steps of `step`. load(set,
// block, bytes) loads the lines' channels at a block's positions, take(set, c, sums) receives a channel's sums, and
// weights(first, second) provides the weights of one or two blocks for each set; whether they stay in registers is up
// to it.
template <class Weights, class Load, class Take>
inline void multiply_sets(bool two, int32_t set, int32_t sets, int32_t step, Weights&& weights, Load&& load,
                          Take&& take) {
  for (; set < sets; set += step) {
    uint32_t near[3][2], far[3][2];
    load(set, 0, near);
    if (two) load(set, 1, far);
    Bands::Band first, second;
    weights(first, second);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      Sums sums;
      sums.add(first, near[c], two, second, far[c]);
      take(set, c, sums);
    }
  }
}

// The same with the weights in registers.
template <class Load, class Take>
inline void multiply_lines(const Bands& bands, int32_t set, int32_t sets, int32_t step, Load&& load, Take&& take) {
  const bool two = bands.groups() > 8;
  Bands::Band first, second;
  bands.load(0, first);
  if (two) bands.load(1, second);
  multiply_sets(two, set, sets, step, [&](Bands::Band& a, Bands::Band& b) { a = first, b = second; }, load, take);
}

}  // namespace stoker::stage
