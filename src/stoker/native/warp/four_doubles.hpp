// SPDX-License-Identifier: Apache-2.0
// Vector of four doubles, the channels of a pixel of bytes, for functions marked STOKER_WIDE (base/simd.hpp).
#pragma once
#include <cstdint>
#include <cstring>

#include "base/simd.hpp"
#include "shared/warp_point.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stoker::warp {

// Load a pixel of three or four bytes, without reading beyond it.
template <int kChannels>
inline uint32_t pixel_bytes(const uint8_t* p) {
  uint32_t bytes = 0;
  if constexpr (kChannels == 4) {
    std::memcpy(&bytes, p, 4);
    return bytes;
  }
  std::memcpy(&bytes, p, 2);
  return bytes | static_cast<uint32_t>(p[2]) << 16;
}

#if defined(__x86_64__)
#define STOKER_FOUR_DOUBLES 1

using Doubles4 = __m256d;

// Return a + (b - a) * t of bytes. The difference is exact in integers too, and there it does not wait for the adders of
// doubles, which limit the whole.
STOKER_WIDE inline Doubles4 lerp_bytes(uint32_t a, uint32_t b, double t) {
  const __m128i first = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int>(a)));
  const __m128i apart = _mm_sub_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int>(b))), first);
  return _mm256_add_pd(_mm256_cvtepi32_pd(first), _mm256_mul_pd(_mm256_cvtepi32_pd(apart), _mm256_set1_pd(t)));
}
// Return a + (b - a) * t.
STOKER_WIDE inline Doubles4 lerp4(Doubles4 a, Doubles4 b, double t) {
  return _mm256_add_pd(a, _mm256_mul_pd(_mm256_sub_pd(b, a), _mm256_set1_pd(t)));
}
// Truncate values of 0 to 255 to bytes.
STOKER_WIDE inline uint32_t truncated(Doubles4 x) {
  const __m128i low_bytes = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_shuffle_epi8(_mm256_cvttpd_epi32(x), low_bytes)));
}

// neighbours() of four outputs after the other. `first`: position of the first output, x + 0.5.
class FourNeighbours {
 public:
  STOKER_WIDE FourNeighbours(const Line& line, double first, int32_t last, int32_t stride)
      : at_(_mm256_add_pd(_mm256_set1_pd(first), _mm256_setr_pd(0, 1, 2, 3))),  // exact, as are its sums with 4
        step_(_mm256_set1_pd(line.step)),
        across_(_mm256_set1_pd(line.across)),
        offset_(_mm256_set1_pd(line.offset)),
        limit_(_mm256_set1_pd(line.limit)),
        last_(_mm_set1_epi32(last)),
        stride_(_mm_set1_epi32(stride)) {}
  STOKER_WIDE void next(int32_t* a, int32_t* b, double* weight) {
    __m256d v = _mm256_add_pd(_mm256_add_pd(_mm256_mul_pd(step_, at_), across_), offset_);
    v = _mm256_min_pd(_mm256_max_pd(v, _mm256_setzero_pd()), limit_);  // the second operand of a maximum replaces NaN
    v = _mm256_sub_pd(v, _mm256_set1_pd(0.5));
    const __m256d whole = _mm256_floor_pd(v);
    const __m128i i = _mm256_cvttpd_epi32(whole);
    const __m128i low = _mm_max_epi32(i, _mm_setzero_si128());
    const __m128i high = _mm_min_epi32(_mm_add_epi32(i, _mm_set1_epi32(1)), last_);
    _mm256_store_pd(weight, _mm256_sub_pd(v, whole));
    _mm_store_si128(reinterpret_cast<__m128i*>(a), _mm_mullo_epi32(low, stride_));
    _mm_store_si128(reinterpret_cast<__m128i*>(b), _mm_mullo_epi32(high, stride_));
    at_ = _mm256_add_pd(at_, _mm256_set1_pd(4));
  }

 private:
  __m256d at_, step_, across_, offset_, limit_;
  __m128i last_, stride_;
};

#elif defined(__aarch64__)
#define STOKER_FOUR_DOUBLES 1

struct Doubles4 {
  float64x2_t low, high;
};

inline Doubles4 load_doubles(uint32_t bytes) {
  const uint32x4_t lanes = vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)))));
  return {vcvtq_f64_u64(vmovl_u32(vget_low_u32(lanes))), vcvtq_f64_u64(vmovl_high_u32(lanes))};
}
inline Doubles4 lerp4(const Doubles4& a, const Doubles4& b, double t) {
  return {vaddq_f64(a.low, vmulq_n_f64(vsubq_f64(b.low, a.low), t)),
          vaddq_f64(a.high, vmulq_n_f64(vsubq_f64(b.high, a.high), t))};
}
inline Doubles4 lerp_bytes(uint32_t a, uint32_t b, double t) { return lerp4(load_doubles(a), load_doubles(b), t); }
inline uint32_t truncated(const Doubles4& x) {
  const uint32x4_t lanes = vcombine_u32(vmovn_u64(vcvtq_u64_f64(x.low)), vmovn_u64(vcvtq_u64_f64(x.high)));
  const uint16x4_t words = vmovn_u32(lanes);
  return vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
}

// neighbours() of four outputs after the other. `first`: position of the first output, x + 0.5.
class FourNeighbours {
 public:
  FourNeighbours(const Line& line, double first, int32_t last, int32_t stride)
      : line_(line), first_(first), last_(last), stride_(stride) {}
  void next(int32_t* a, int32_t* b, double* weight) {
    for (int k = 0; k < 4; ++k) {
      double v = line_.step * (first_ + static_cast<double>(k)) + line_.across + line_.offset;
      v = v > 0.0 ? v : 0.0;
      v = v < line_.limit ? v : line_.limit;
      v -= 0.5;
      const int32_t i = static_cast<int32_t>(v) - static_cast<int32_t>(v < 0.0);  // floor, for values above -1
      weight[k] = v - static_cast<double>(i);
      a[k] = std::max(i, 0) * stride_;
      b[k] = std::min(i + 1, last_) * stride_;
    }
    first_ += 4.0;
  }

 private:
  Line line_;
  double first_;
  int32_t last_, stride_;
};

#endif

#if STOKER_FOUR_DOUBLES

// Four pixels around a point: two rows, and two offsets in both.
struct Square {
  const uint8_t *top, *bottom;
  int64_t left, right;
};

// `kBytes`: bytes that a load takes. Four are loaded faster than three; the fourth is not used.
template <int kBytes>
STOKER_WIDE inline uint32_t interpolated(const Square& at, double dx, double dy) {
  const uint8_t *a = at.top + at.left, *b = at.top + at.right, *c = at.bottom + at.left, *d = at.bottom + at.right;
  const Doubles4 upper = lerp_bytes(pixel_bytes<kBytes>(a), pixel_bytes<kBytes>(b), dx);
  const Doubles4 lower = lerp_bytes(pixel_bytes<kBytes>(c), pixel_bytes<kBytes>(d), dx);
  return truncated(lerp4(upper, lower, dy));
}

// Interpolate between four pixels, without reading beyond `last`, the image's last pixel.
template <int kChannels>
STOKER_WIDE inline void interpolate(const Square& at, const uint8_t* last, double dx, double dy, uint8_t* to) {
  const bool inner = kChannels == 4 || at.bottom + at.right < last;
  const uint32_t bytes = inner ? interpolated<4>(at, dx, dy) : interpolated<kChannels>(at, dx, dy);
  std::memcpy(to, &bytes, kChannels);
}

#endif

}  // namespace stoker::warp
