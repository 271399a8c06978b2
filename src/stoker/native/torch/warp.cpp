// SPDX-License-Identifier: Apache-2.0
#include "torch/warp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/four_floats.hpp"
#include "base/fused_forms.hpp"

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

#if defined(STOKER_FMA)

constexpr int64_t kChunk = 64;

// Source positions of some output pixels of a row, and the neighbours of those pixels whose four neighbours are well
// inside of the image.
struct SamplePoints {
  alignas(32) float x[kChunk], y[kChunk];
  alignas(32) float weight[4][kChunk];  // in the order of `linear`
  alignas(32) int32_t left[kChunk], top[kChunk], inside[kChunk];
};

STOKER_FMA void find_sample_points(const Bitmap& from, const Grid& g, const Middle& m, const float* given, int64_t i0,
                                   int64_t n, float y, SamplePoints& l) {
  for (int64_t i = 0; i < n; ++i) {
    const Point p = given ? Point{given[2 * (i0 + i)], given[2 * (i0 + i) + 1]}
                          : look<true>(g, static_cast<float>(i0 + i) + m.x0, y);
    l.x[i] = fused<true>(p.x + 1.0f, m.half_width, -0.5f);
    l.y[i] = fused<true>(p.y + 1.0f, m.half_height, -0.5f);
  }
  // "Well inside" means that eight values from the left neighbour on are in its row.
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

// The same operations on the same floats as `linear`, with a pixel's channels (and the values after them) in one
// register.
template <class T>
STOKER_FMA void linear_pixel(const Bitmap from, const SamplePoints& l, int64_t i, const Fill& fill, Floats4 filler,
                             T* to) {
  const uint8_t* p = from.data + l.top[i] * from.row + 3 * int64_t{l.left[i]} * int64_t{sizeof(T)};
  const auto *upper = reinterpret_cast<const T*>(p), *lower = reinterpret_cast<const T*>(p + from.row);
  Floats4 sum = load_floats(upper) * four_times(l.weight[0][i]);
  sum = multiply_add(load_floats(upper + 3), four_times(l.weight[1][i]), sum);
  sum = multiply_add(load_floats(lower), four_times(l.weight[2][i]), sum);
  sum = multiply_add(load_floats(lower + 3), four_times(l.weight[3][i]), sum);
  if (fill.has) {
    const float mask = ((l.weight[0][i] + l.weight[1][i]) + l.weight[2][i]) + l.weight[3][i];
    const Floats4 inside = four_times(mask), outside = four_times(1.0f - mask);
    sum = fill.first ? sum * inside + outside * filler : (sum - filler) * inside + filler;
  }
  store_three(to, sum);
}

// Three channels, contiguous in both images.
template <class T>
STOKER_FMA void linear_rows(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  const Bitmap from = bitmap_of(src);
  const Middle middle(from, g.projective, dst.shape[0], dst.shape[1]);
  const Floats4 filler = {fill.value[0], fill.value[1], fill.value[2], 0.0f};
  SamplePoints points;
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    const float* given = g.given ? g.given + 2 * j * dst.shape[1] : nullptr;
    uint8_t* to = dst.data + j * dst.stride[0];
    for (int64_t i0 = 0; i0 < dst.shape[1]; i0 += kChunk) {
      const int64_t n = std::min(kChunk, dst.shape[1] - i0);
      find_sample_points(from, g, middle, given, i0, n, static_cast<float>(j) + middle.y0, points);
      for (int64_t i = 0; i < n; ++i, to += dst.stride[1]) {
        if (points.inside[i]) linear_pixel(from, points, i, fill, filler, reinterpret_cast<T*>(to));
        else linear<true>(from, points.x[i], points.y[i], fill, reinterpret_cast<T*>(to));
      }
    }
  }
}

template <bool kLinear, class T>
STOKER_FMA void rows_fused(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<true, kLinear, T>(src, g, fill, dst);
}
#endif

template <bool kLinear, class T>
void run(const View& src, const Grid& g, const Fill& fill, const View& dst) {
#if defined(STOKER_FMA)
  if (has_fma()) {
    constexpr int64_t item = sizeof(T);
    const bool packed =
        src.shape[2] == 3 && src.stride[2] == item && src.stride[1] == 3 * item && dst.stride[1] == 3 * item;
    return kLinear && packed ? linear_rows<T>(src, g, fill, dst) : rows_fused<kLinear, T>(src, g, fill, dst);
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
