// SPDX-License-Identifier: Apache-2.0
#include "torch_color.hpp"

#include <algorithm>
#include <cmath>

#include "correlate.hpp"
#include "pixel_rows.hpp"
#include "simd.hpp"
#include "xmath.hpp"

namespace stoker::torch_color {

namespace {

template <class F>
[[gnu::always_inline]] inline void each(const View& src, const View& dst, F&& f) {
  for (int64_t y = 0; y < src.shape[0]; ++y)
    for (int64_t x = 0; x < src.shape[1]; ++x)
      f(src.data + y * src.stride[0] + x * src.stride[1], dst.data + y * dst.stride[0] + x * dst.stride[1]);
}

// Grey values of either generation.
template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline int grey_of(const uint8_t* p) {
  if constexpr (kFirst) return first_luma(p, Planes3::kPitch);
  return static_cast<int>(luma<kHardware>(p, Planes3::kPitch));  // below 255: the conversion rounds down
}

template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline void gray_planes(const uint8_t* p, int n, uint8_t* __restrict to) {
  for (int i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(grey_of<kHardware, kFirst>(p + i));
}

template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline void saturate_planes(uint8_t* p, int n, float ratio, float other) {
  for (int i = 0; i < n; ++i) {
    const auto grey = static_cast<float>(grey_of<kHardware, kFirst>(p + i));
    for (int c = 0; c < 3; ++c) {
      uint8_t& value = p[i + c * Planes3::kPitch];
      const auto v = static_cast<float>(value);
      value = kFirst ? first_blend(v, grey, ratio, other) : blend<kHardware>(v, grey, ratio, other);
    }
  }
}

template <bool kHardware>
[[gnu::always_inline]] inline int64_t sum_grey(const View& src) {
  int64_t sum = 0;
  each(src, src, [&](const uint8_t* p, uint8_t*) __attribute__((always_inline)) {
    sum += src.shape[2] == 3 ? static_cast<int>(luma<kHardware>(p, src.stride[2])) : int{*p};
  });
  return sum;
}

#if defined(__x86_64__)
#define STOKER_FMA __attribute__((target("avx2,fma")))
template <bool kFirst>
STOKER_FMA void gray_fma(const uint8_t* p, int n, uint8_t* to) {
  gray_planes<true, kFirst>(p, n, to);
}
template <bool kFirst>
STOKER_FMA void saturate_fma(uint8_t* p, int n, float ratio, float other) {
  saturate_planes<true, kFirst>(p, n, ratio, other);
}
STOKER_FMA int64_t sum_grey_fma(const View& src) { return sum_grey<true>(src); }
#endif

bool has_fma() {
#if defined(__x86_64__)
  return (isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

template <bool kFirst>
void gray_plain(const uint8_t* p, int n, uint8_t* to) {
  gray_planes<false, kFirst>(p, n, to);
}
template <bool kFirst>
void saturate_plain(uint8_t* p, int n, float ratio, float other) {
  saturate_planes<false, kFirst>(p, n, ratio, other);
}

template <bool kFirst>
auto choose_gray() {
#if defined(__x86_64__)
  if (has_fma()) return gray_fma<kFirst>;
#endif
  return gray_plain<kFirst>;
}
template <bool kFirst>
auto choose_saturate() {
#if defined(__x86_64__)
  if (has_fma()) return saturate_fma<kFirst>;
#endif
  return saturate_plain<kFirst>;
}

}  // namespace

void gray(Generation generation, const View& src, const View& dst) {
  const auto run = generation == Generation::First ? choose_gray<true>() : choose_gray<false>();
  Rows rows(src);
  Planes3 planes;
  uint8_t grey[Planes3::kPitch];
  for (int64_t y = 0; y < src.shape[0]; ++y)
    planes.each(rows.row(y), src.shape[1], [&](int64_t x, int n) {
      run(planes.at[0], n, grey);
      uint8_t* to = dst.data + y * dst.stride[0] + x * dst.stride[1];
      for (int i = 0; i < n; ++i) to[i * dst.stride[1]] = grey[i];
    });
}

void saturate(Generation generation, const View& src, double factor, const View& dst) {
  const float ratio = static_cast<float>(factor), other = static_cast<float>(1.0 - factor);
  const auto run = generation == Generation::First ? choose_saturate<true>() : choose_saturate<false>();
  Rows rows(src);
  Planes3 planes;
  for (int64_t y = 0; y < src.shape[0]; ++y)
    planes.each(rows.row(y), src.shape[1], [&](int64_t x, int n) {
      run(planes.at[0], n, ratio, other);
      planes.put(dst.data + y * dst.stride[0], x, n);
    });
}

void hue(const View& src, double shift, const View& dst) {
  const float by = static_cast<float>(shift);
  each(src, dst, [&](const uint8_t* p, uint8_t* to) { turned(p, src.stride[2], by, to); });
}

bool sharpen(Generation generation, const View& src, double factor, const View& dst, Scratch& smooth, Scratch& work) {
  const float edge = static_cast<float>(1.0 / 13.0), middle = static_cast<float>(5.0 / 13.0);
  const float other = static_cast<float>(1.0 - factor);
  const float weights[9] = {edge, edge, edge, edge, middle, edge, edge, edge, edge};
  View inner = dst;
  inner.dtype = DType::F32;
  inner.shape[0] -= 2;
  inner.shape[1] -= 2;
  inner.set_contiguous_strides();
  inner.data = smooth.get(static_cast<size_t>(inner.elements()) * sizeof(float));
  correlate::Window window{weights, 3, 3, 0, 0};
  window.fused = true;
  if (!correlate::correlate(src, window, inner, work)) return false;
  for (int64_t y = 0; y < src.shape[0]; ++y)
    for (int64_t x = 0; x < src.shape[1]; ++x)
      for (int64_t c = 0; c < src.shape[2]; ++c) {
        const uint8_t here = src.data[y * src.stride[0] + x * src.stride[1] + c * src.stride[2]];
        uint8_t& to = dst.data[y * dst.stride[0] + x * dst.stride[1] + c];
        const float ratio = static_cast<float>(factor);
        if (y == 0 || x == 0 || y + 1 == src.shape[0] || x + 1 == src.shape[1]) {
          to = generation == Generation::First ? first_blend(here, here, ratio, other) : here;
          continue;
        }
        float blurred;
        __builtin_memcpy(&blurred, inner.data + (y - 1) * inner.stride[0] + (x - 1) * inner.stride[1] + c * 4, 4);
        const float v = here, round = static_cast<float>(xm::round_even(static_cast<double>(blurred)));
        to = generation == Generation::First ? first_blend(v, byte(round), ratio, other)
                                             : byte(fused_plain(round - v, other, v));
      }
  return true;
}

void contrast_table(Generation generation, const View& src, double factor, uint8_t table[256]) {
  const float ratio = static_cast<float>(factor), other = static_cast<float>(1.0 - factor);
  const int64_t pixels = src.shape[0] * src.shape[1];
  if (generation == Generation::First) {
    int64_t total = 0;
    each(src, src, [&](const uint8_t* p, uint8_t*) {
      total += src.shape[2] == 3 ? first_luma(p, src.stride[2]) : int{*p};
    });
    return first_contrast_table(total, pixels, ratio, other, table);
  }
#if defined(__x86_64__)
  const int64_t sum = has_fma() ? sum_grey_fma(src) : sum_grey<false>(src);
#else
  const int64_t sum = sum_grey<false>(src);
#endif
  contrast_table<false>(sum, pixels, ratio, other, table);
}

}  // namespace stoker::torch_color
