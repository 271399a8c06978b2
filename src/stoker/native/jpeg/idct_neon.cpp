// SPDX-License-Identifier: Apache-2.0
// One block at a time in eight 16-bit lanes. Products and their sums have 32 bits and wrap, sums of two inputs wrap to
// 16 bits, and results are narrowed with saturation: the rules of jpeg/idct.hpp.
#include "jpeg/neon.hpp"
#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstring>

#include "shared/jpeg_arithmetic.cuh"

namespace stoker::jpeg {
namespace {

constexpr int kCornerEnd = 10;  // earlier zig-zag positions form the top left triangle

struct Wide {  // 8 sums
  int32x4_t lo, hi;
};

// a * ka + b * kb
inline Wide dot(int16x8_t a, int16x8_t b, int ka, int kb) {
  const int16_t k0 = static_cast<int16_t>(ka), k1 = static_cast<int16_t>(kb);
  return {vmlal_n_s16(vmull_n_s16(vget_low_s16(a), k0), vget_low_s16(b), k1),
          vmlal_n_s16(vmull_n_s16(vget_high_s16(a), k0), vget_high_s16(b), k1)};
}
inline Wide times(int16x8_t a, int k) {
  return {vmull_n_s16(vget_low_s16(a), static_cast<int16_t>(k)),
          vmull_n_s16(vget_high_s16(a), static_cast<int16_t>(k))};
}
inline Wide add(Wide a, Wide b) { return {vaddq_s32(a.lo, b.lo), vaddq_s32(a.hi, b.hi)}; }
inline Wide sub(Wide a, Wide b) { return {vsubq_s32(a.lo, b.lo), vsubq_s32(a.hi, b.hi)}; }

template <int kShift>
inline int16x8_t narrow(Wide v) {
  return vcombine_s16(vqmovn_s32(vshrq_n_s32(v.lo, kShift)), vqmovn_s32(vshrq_n_s32(v.hi, kShift)));
}

template <int kShift>
inline Wide scaled(int16x8_t x) {
  const int32x4_t rounding = vdupq_n_s32(1 << (kShift - 1));
  return {vaddq_s32(vshll_n_s16(vget_low_s16(x), 13), rounding),
          vaddq_s32(vshll_n_s16(vget_high_s16(x), 13), rounding)};
}

template <int kShift>
inline void combine(const Wide* even, const Wide* odd, int16x8_t* x) {
  for (int i = 0; i < 4; ++i) {
    x[i] = narrow<kShift>(add(even[i], odd[i]));
    x[7 - i] = narrow<kShift>(sub(even[i], odd[i]));
  }
}

template <int kShift>
inline void pass(int16x8_t* x) {
  const Wide t2 = dot(x[2], x[6], k0541, k0541 - k1847), t3 = dot(x[2], x[6], k0541 + k0765, k0541);
  const Wide t0 = scaled<kShift>(vaddq_s16(x[0], x[4])), t1 = scaled<kShift>(vsubq_s16(x[0], x[4]));
  const Wide even[4] = {add(t0, t3), add(t1, t2), sub(t1, t2), sub(t0, t3)};
  const int16x8_t y3 = vaddq_s16(x[7], x[3]), y4 = vaddq_s16(x[5], x[1]);
  const Wide z3 = dot(y3, y4, k1175 - k1961, k1175), z4 = dot(y3, y4, k1175, k1175 - k0390);
  const Wide odd[4] = {add(dot(x[7], x[1], -k0899, k1501 - k0899), z4), add(dot(x[5], x[3], -k2562, k3072 - k2562), z3),
                       add(dot(x[5], x[3], k2053 - k2562, -k2562), z4),
                       add(dot(x[7], x[1], k0298 - k0899, -k0899), z3)};
  combine<kShift>(even, odd, x);
}

// The same for inputs with x[4..7] zero.
template <int kShift>
inline void pass_half(int16x8_t* x) {
  const Wide t0 = scaled<kShift>(x[0]), t2 = times(x[2], k0541), t3 = times(x[2], k0541 + k0765);
  const Wide even[4] = {add(t0, t3), add(t0, t2), sub(t0, t2), sub(t0, t3)};
  const Wide odd[4] = {dot(x[1], x[3], k1501 - k0899 + k1175 - k0390, k1175),
                       dot(x[1], x[3], k1175, k3072 - k2562 + k1175 - k1961),
                       dot(x[1], x[3], k1175 - k0390, k1175 - k2562), dot(x[1], x[3], k1175 - k0899, k1175 - k1961)};
  combine<kShift>(even, odd, x);
}

inline void transpose(int16x8_t* x) {
  int16x8_t a[8];
  int32x4_t b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = vtrn1q_s16(x[i], x[i + 1]);
    a[i + 1] = vtrn2q_s16(x[i], x[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const int32x4_t p = vreinterpretq_s32_s16(a[i + j]), q = vreinterpretq_s32_s16(a[i + j + 2]);
      b[i + j] = vtrn1q_s32(p, q);
      b[i + j + 2] = vtrn2q_s32(p, q);
    }
  }
  for (int i = 0; i < 4; ++i) {
    const int64x2_t p = vreinterpretq_s64_s32(b[i]), q = vreinterpretq_s64_s32(b[i + 4]);
    x[i] = vreinterpretq_s16_s64(vtrn1q_s64(p, q));
    x[i + 4] = vreinterpretq_s16_s64(vtrn2q_s64(p, q));
  }
}

template <bool kCorner>
inline void transform(int16_t* block, const int16_t* quantiser, uint8_t* out, ptrdiff_t pitch) {
  constexpr int kRows = kCorner ? 4 : 8;
  int16x8_t x[8], ac = vdupq_n_s16(0);
  for (int y = 0; y < kRows; ++y) {
    const int16x8_t v = vld1q_s16(block + 8 * y);
    vst1q_s16(block + 8 * y, vdupq_n_s16(0));
    if (y) ac = vorrq_s16(ac, v);
    x[y] = vmulq_s16(v, vld1q_s16(quantiser + 8 * y));
  }
  if (vmaxvq_u16(vreinterpretq_u16_s16(ac)) == 0) {
    const int16x8_t wrapped = vshlq_n_s16(x[0], 2);
    for (int y = 0; y < 8; ++y) x[y] = wrapped;
  } else if constexpr (kCorner) {
    pass_half<kColumnShift>(x);
  } else {
    pass<kColumnShift>(x);
  }
  transpose(x);
  if constexpr (kCorner) pass_half<kRowShift>(x);
  else pass<kRowShift>(x);
  transpose(x);
  for (int y = 0; y < 8; ++y, out += pitch) vst1_u8(out, vadd_u8(vreinterpret_u8_s8(vqmovn_s16(x[y])), vdup_n_u8(128)));
}

}  // namespace

void inverse_dct_neon(int16_t* coefficients, const uint8_t* ends, int count, const int16_t* quantiser, uint8_t* out,
                      ptrdiff_t pitch) {
  for (int i = 0; i < count; ++i, coefficients += 64, out += 8) {
    if (ends[i] > kCornerEnd) {
      transform<false>(coefficients, quantiser, out, pitch);
    } else if (ends[i] > 1) {
      transform<true>(coefficients, quantiser, out, pitch);
    } else {
      const uint8x8_t row = vdup_n_u8(flat_sample(dequantised(coefficients[0], quantiser[0])));
      for (int y = 0; y < 8; ++y) vst1_u8(out + y * pitch, row);
      coefficients[0] = 0;
    }
  }
}

}  // namespace stoker::jpeg
#endif
