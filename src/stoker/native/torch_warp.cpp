// SPDX-License-Identifier: Apache-2.0
#include "torch_warp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fused_forms.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::torch_warp {

namespace {

constexpr int64_t kMaxChannels = 3;

template <bool kHardware, bool kLinear, class T>
[[gnu::always_inline]] inline void rows(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  const Bitmap from = bitmap_of(src);
  const Middle middle(from, g.projective, dst.shape[0], dst.shape[1]);
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    const float* given = g.given ? g.given + 2 * j * dst.shape[1] : nullptr;
    for (int64_t i = 0; i < dst.shape[1]; ++i, to += dst.stride[1])
      sample_pixel<kHardware, kLinear>(from, g, middle, fill, given, i, j, reinterpret_cast<T*>(to));
  }
}

template <bool kLinear, class T>
void rows_plain(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<false, kLinear, T>(src, g, fill, dst);
}

#if defined(__x86_64__)

constexpr int64_t kChunk = 64;

// Some output pixels of a row: where they look, and of those whose four neighbours lie well inside, the neighbours.
struct Looks {
  alignas(32) float x[kChunk], y[kChunk];
  alignas(32) float weight[4][kChunk];  // as `linear` has them
  alignas(32) int32_t left[kChunk], top[kChunk], inside[kChunk];
};

STOKER_FMA void find_looks(const Bitmap& from, const Grid& g, const Middle& m, const float* given, int64_t i0, int64_t n,
                           float y, Looks& l) {
  for (int64_t i = 0; i < n; ++i) {
    const Point p = given ? Point{given[2 * (i0 + i)], given[2 * (i0 + i) + 1]}
                          : look<true>(g, static_cast<float>(i0 + i) + m.x0, y);
    l.x[i] = fused<true>(p.x + 1.0f, m.half_width, -0.5f);
    l.y[i] = fused<true>(p.y + 1.0f, m.half_height, -0.5f);
  }
  // So far in that eight values from the left neighbour on are in its row.
  const auto last_left = static_cast<float>(from.width - 3), last_top = static_cast<float>(from.height - 2);
  for (int64_t i = 0; i < n; ++i) {
    const float left = std::floor(l.x[i]), top = std::floor(l.y[i]);
    const float w = l.x[i] - left, e = 1.0f - w, below = l.y[i] - top, s = 1.0f - below;
    l.weight[0][i] = e * s;
    l.weight[1][i] = w * s;
    l.weight[2][i] = e * below;
    l.weight[3][i] = w * below;
    l.inside[i] = (left >= 0.0f) & (left <= last_left) & (top >= 0.0f) & (top <= last_top);
    l.left[i] = static_cast<int32_t>(l.inside[i] ? left : 0.0f);
    l.top[i] = static_cast<int32_t>(l.inside[i] ? top : 0.0f);
  }
}

// The four neighbours of a point, each with what follows it.
struct Four {
  __m128 upper_left, upper_right, lower_left, lower_right;
};

// A pixel of three bytes, and what follows it.
STOKER_FMA inline __m128 pixel_of(__m128i bytes) { return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(bytes)); }

STOKER_FMA inline Four four_of(const uint8_t* p, int64_t row, uint8_t*) {
  const __m128i upper = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  const __m128i lower = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + row));
  return {pixel_of(upper), pixel_of(_mm_srli_si128(upper, 3)), pixel_of(lower), pixel_of(_mm_srli_si128(lower, 3))};
}

STOKER_FMA inline Four four_of(const uint8_t* p, int64_t row, float*) {
  const auto* upper = reinterpret_cast<const float*>(p);
  const auto* lower = reinterpret_cast<const float*>(p + row);
  return {_mm_loadu_ps(upper), _mm_loadu_ps(upper + 3), _mm_loadu_ps(lower), _mm_loadu_ps(lower + 3)};
}

STOKER_FMA inline void keep_three(__m128 sum, uint8_t* to) {
  sum = _mm_min_ps(_mm_max_ps(sum, _mm_setzero_ps()), _mm_set1_ps(255.0f));  // NaN: 0
  const __m128i low_bytes = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const int bytes = _mm_cvtsi128_si32(_mm_shuffle_epi8(_mm_cvtps_epi32(sum), low_bytes));
  std::memcpy(to, &bytes, 3);
}

STOKER_FMA inline void keep_three(__m128 sum, float* to) {
  float values[4];
  _mm_storeu_ps(values, sum);
  std::memcpy(to, values, 3 * sizeof(float));
}

// The same operations on the same floats as `linear`, a pixel's channels side by side.
template <class T>
STOKER_FMA void linear_avx2(const Bitmap from, const Looks& l, int64_t i, const Fill& fill, __m128 filler, T* to) {
  const Four at = four_of(from.data + l.top[i] * from.row + 3 * int64_t{l.left[i]} * int64_t{sizeof(T)}, from.row, to);
  __m128 sum = _mm_mul_ps(at.upper_left, _mm_set1_ps(l.weight[0][i]));
  sum = _mm_fmadd_ps(at.upper_right, _mm_set1_ps(l.weight[1][i]), sum);
  sum = _mm_fmadd_ps(at.lower_left, _mm_set1_ps(l.weight[2][i]), sum);
  sum = _mm_fmadd_ps(at.lower_right, _mm_set1_ps(l.weight[3][i]), sum);
  if (fill.has) {
    const float mask = ((l.weight[0][i] + l.weight[1][i]) + l.weight[2][i]) + l.weight[3][i];
    const __m128 inside = _mm_set1_ps(mask), outside = _mm_set1_ps(1.0f - mask);
    sum = fill.first ? _mm_add_ps(_mm_mul_ps(sum, inside), _mm_mul_ps(outside, filler))
                     : _mm_add_ps(_mm_mul_ps(_mm_sub_ps(sum, filler), inside), filler);
  }
  keep_three(sum, to);
}

// Three channels, side by side in both images.
template <class T>
STOKER_FMA void linear_rows_avx2(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  const Bitmap from = bitmap_of(src);
  const Middle middle(from, g.projective, dst.shape[0], dst.shape[1]);
  const __m128 filler = _mm_setr_ps(fill.value[0], fill.value[1], fill.value[2], 0.0f);
  Looks looks;
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    const float* given = g.given ? g.given + 2 * j * dst.shape[1] : nullptr;
    uint8_t* to = dst.data + j * dst.stride[0];
    for (int64_t i0 = 0; i0 < dst.shape[1]; i0 += kChunk) {
      const int64_t n = std::min(kChunk, dst.shape[1] - i0);
      find_looks(from, g, middle, given, i0, n, static_cast<float>(j) + middle.y0, looks);
      for (int64_t i = 0; i < n; ++i, to += dst.stride[1]) {
        if (looks.inside[i]) linear_avx2(from, looks, i, fill, filler, reinterpret_cast<T*>(to));
        else linear<true>(from, looks.x[i], looks.y[i], fill, reinterpret_cast<T*>(to));
      }
    }
  }
}

template <bool kLinear, class T>
STOKER_FMA void rows_avx2(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<true, kLinear, T>(src, g, fill, dst);
}
#endif

template <bool kLinear, class T>
void run(const View& src, const Grid& g, const Fill& fill, const View& dst) {
#if defined(__x86_64__)
  if (has_fma()) {
    constexpr int64_t item = sizeof(T);
    const bool packed =
        src.shape[2] == 3 && src.stride[2] == item && src.stride[1] == 3 * item && dst.stride[1] == 3 * item;
    return kLinear && packed ? linear_rows_avx2<T>(src, g, fill, dst) : rows_avx2<kLinear, T>(src, g, fill, dst);
  }
#endif
  rows_plain<kLinear, T>(src, g, fill, dst);
}

}  // namespace

bool sample(const View& src, const Grid& grid, bool linear, const Fill& fill, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != dst.dtype) return false;
  const bool floats = src.dtype == DType::F32;
  if (!floats && src.dtype != DType::U8) return false;
  if (src.shape[2] != dst.shape[2] || src.shape[2] > kMaxChannels || dst.stride[2] != size_of(dst.dtype)) return false;
  if (src.elements() == 0 || std::max(src.shape[0], src.shape[1]) > 1 << 24) return false;
  if (floats) linear ? run<true, float>(src, grid, fill, dst) : run<false, float>(src, grid, fill, dst);
  else linear ? run<true, uint8_t>(src, grid, fill, dst) : run<false, uint8_t>(src, grid, fill, dst);
  return true;
}

}  // namespace stoker::torch_warp
