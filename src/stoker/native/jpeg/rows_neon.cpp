// SPDX-License-Identifier: Apache-2.0
#include "jpeg/neon.hpp"
#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstring>

#include "shared/jpeg_arithmetic.cuh"

namespace stoker::jpeg {
namespace {

inline uint16x8_t times3(uint8x8_t v) { return vmull_u8(v, vdup_n_u8(3)); }
inline uint16x8_t times3(uint16x8_t v) { return vmulq_n_u16(v, 3); }

void double_width_neon(const uint8_t* in, int n, uint8_t* out) {
  for (int i = 0; i < n; i += 8) {
    const uint16x8_t three = times3(vld1_u8(in + i));
    const uint16x8_t even = vaddq_u16(vaddw_u8(three, vld1_u8(in + i - 1)), vdupq_n_u16(1));
    const uint16x8_t odd = vaddw_u8(three, vld1_u8(in + i + 1));
    vst2_u8(out + 2 * i, (uint8x8x2_t{{vshrn_n_u16(even, 2), vrshrn_n_u16(odd, 2)}}));
  }
}

void double_height_neon(const uint8_t* near, const uint8_t* far, int bias, int n, uint8_t* out) {
  const uint16x8_t b = vdupq_n_u16(static_cast<uint16_t>(bias));
  for (int i = 0; i < n; i += 8) {
    const uint16x8_t sum = vaddq_u16(vaddw_u8(times3(vld1_u8(near + i)), vld1_u8(far + i)), b);
    vst1_u8(out + i, vshrn_n_u16(sum, 2));
  }
}

inline uint16x8_t load_sums(const int16_t* p) { return vreinterpretq_u16_s16(vld1q_s16(p)); }

void double_both_neon(const uint8_t* near, const uint8_t* far, int n, int16_t* sums, uint8_t* out) {
  for (int i = 0; i < n + 2; i += 8) {
    const uint16x8_t sum = vaddw_u8(times3(vld1_u8(near + i - 1)), vld1_u8(far + i - 1));
    vst1q_s16(sums + i, vreinterpretq_s16_u16(sum));
  }
  for (int i = 0; i < n; i += 8) {
    const uint16x8_t three = times3(load_sums(sums + i + 1));
    const uint16x8_t even = vaddq_u16(three, load_sums(sums + i));
    const uint16x8_t odd = vaddq_u16(vaddq_u16(three, load_sums(sums + i + 2)), vdupq_n_u16(7));
    vst2_u8(out + 2 * i, (uint8x8x2_t{{vrshrn_n_u16(even, 4), vshrn_n_u16(odd, 4)}}));
  }
}

// kCrToR and kCbToB do not fit into 16 bits: whole multiples of the input are split off.
inline int16x8_t rounded_product(int16x8_t a, int ka) {
  const int16_t k = static_cast<int16_t>(ka);
  return vcombine_s16(vrshrn_n_s32(vmull_n_s16(vget_low_s16(a), k), 16),
                      vrshrn_n_s32(vmull_n_s16(vget_high_s16(a), k), 16));
}
inline int16x8_t rounded_products(int16x8_t a, int ka, int16x8_t b, int kb) {
  const int16_t k0 = static_cast<int16_t>(ka), k1 = static_cast<int16_t>(kb);
  const int32x4_t lo = vmlal_n_s16(vmull_n_s16(vget_low_s16(a), k0), vget_low_s16(b), k1);
  const int32x4_t hi = vmlal_n_s16(vmull_n_s16(vget_high_s16(a), k0), vget_high_s16(b), k1);
  return vcombine_s16(vrshrn_n_s32(lo, 16), vrshrn_n_s32(hi, 16));
}

inline int16x8_t widen(uint8x8_t v) { return vreinterpretq_s16_u16(vmovl_u8(v)); }

template <bool kBgr>
inline void convert8(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst) {
  const int16x8_t centre = vdupq_n_s16(128), l = widen(vld1_u8(y));
  const int16x8_t b = vsubq_s16(widen(vld1_u8(cb)), centre), r = vsubq_s16(widen(vld1_u8(cr)), centre);
  const int16x8_t red = vaddq_s16(vaddq_s16(l, r), rounded_product(r, kCrToR - 65536));
  const int16x8_t green = vaddq_s16(vsubq_s16(l, r), rounded_products(b, kCbToG, r, kCrToG + 65536));
  const int16x8_t blue = vaddq_s16(vaddq_s16(l, vaddq_s16(b, b)), rounded_product(b, kCbToB - 131072));
  const uint8x8_t first = vqmovun_s16(kBgr ? blue : red), last = vqmovun_s16(kBgr ? red : blue);
  vst3_u8(dst, (uint8x8x3_t{{first, vqmovun_s16(green), last}}));
}

template <bool kBgr>
void ycc_neon(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n) {
  int i = 0;
  for (; i + 8 <= n; i += 8) convert8<kBgr>(y + i, cb + i, cr + i, dst + 3 * i);
  if (i == n) return;
  uint8_t last[24];
  convert8<kBgr>(y + i, cb + i, cr + i, last);
  std::memcpy(dst + 3 * i, last, 3 * static_cast<size_t>(n - i));
}

void interleave_neon(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16)
    vst3q_u8(dst + 3 * i, (uint8x16x3_t{{vld1q_u8(a + i), vld1q_u8(b + i), vld1q_u8(c + i)}}));
  if (i == n) return;
  uint8_t last[48];
  vst3q_u8(last, (uint8x16x3_t{{vld1q_u8(a + i), vld1q_u8(b + i), vld1q_u8(c + i)}}));
  std::memcpy(dst + 3 * i, last, 3 * static_cast<size_t>(n - i));
}

constexpr RowKernels kNeon = {double_width_neon, double_height_neon, double_both_neon,
                              ycc_neon<false>,   ycc_neon<true>,     interleave_neon};

}  // namespace

const RowKernels& row_kernels_neon() { return kNeon; }

}  // namespace stoker::jpeg
#endif
