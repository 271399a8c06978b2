// SPDX-License-Identifier: Apache-2.0
#include "torch_color.hpp"

#include <algorithm>
#include <cmath>

#include "correlate.hpp"
#include "pixel_rows.hpp"
#include "simd.hpp"
#include "torch_products.hpp"
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

// The grey values of an image in order, some at a time: f(values, count).
template <class F>
void each_grey(Generation generation, const View& src, F&& f) {
  const auto run = generation == Generation::First ? choose_gray<true>() : choose_gray<false>();
  Rows rows(src);
  Planes3 planes;
  uint8_t grey[Planes3::kPitch];
  for (int64_t y = 0; y < src.shape[0]; ++y) {
    if (src.shape[2] == 1) {
      f(rows.row(y), src.shape[1]);
      continue;
    }
    planes.each(rows.row(y), src.shape[1], [&](int64_t, int n) {
      run(planes.at[0], n, grey);
      f(grey, int64_t{n});
    });
  }
}

float sum_in_order(Generation generation, const View& src, const torch_sum::Order& order) {
  const int64_t pixels = src.shape[0] * src.shape[1], share = torch_sum::share_of(pixels, order);
  float sums[torch_sum::kMostThreads];
  uint32_t at[torch_sum::kPlaces] = {};
  int64_t shares = 0, i = 0, count = std::min(share, pixels);
  torch_sum::Places places(count, order.lanes);
  each_grey(generation, src, [&](const uint8_t* values, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      at[places.of(i)] += values[k];
      if (++i < count) continue;
      sums[shares++] = torch_sum::folded(at, order.lanes);
      std::fill_n(at, torch_sum::kPlaces, 0u);
      count = std::min(share, pixels - shares * share);
      places = torch_sum::Places(count, order.lanes);
      i = 0;
    }
  });
  float room[torch_sum::kPlaces];
  return torch_sum::folded_shares(sums, shares, order, room);
}

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

void hue(Generation generation, const View& src, double shift, const View& dst) {
  const float by = static_cast<float>(shift);
  const int64_t step = src.stride[2];
  if (generation == Generation::First) each(src, dst, [&](const uint8_t* p, uint8_t* to) { turned<true>(p, step, by, to); });
  else each(src, dst, [&](const uint8_t* p, uint8_t* to) { turned<false>(p, step, by, to); });
}

bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth, Scratch& work) {
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
  const auto filter = products ? torch_products::correlate : correlate::correlate;
  if (!filter(src, window, inner, work)) return false;
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

void contrast_table(Generation generation, const View& src, double factor, const torch_sum::Order& order,
                    uint8_t table[256]) {
  const float ratio = static_cast<float>(factor), other = static_cast<float>(1.0 - factor);
  const int64_t pixels = src.shape[0] * src.shape[1];
  float sum;
  if (pixels <= torch_sum::kExactBytes) {
    int64_t total = 0;
    each_grey(generation, src, [&](const uint8_t* values, int64_t n) {
      for (int64_t i = 0; i < n; ++i) total += values[i];
    });
    sum = static_cast<float>(total);
  } else {
    sum = sum_in_order(generation, src, order);
  }
  if (generation == Generation::First) first_contrast_table(sum, pixels, ratio, other, table);
  else contrast_table<false>(sum, pixels, ratio, other, table);
}

}  // namespace stoker::torch_color
