// SPDX-License-Identifier: Apache-2.0
#include "torch_float_color.hpp"

#include <algorithm>
#include <cmath>

#include "correlate.hpp"
#include "pixel_rows.hpp"
#include "simd.hpp"
#include "torch_float_sum.hpp"
#include "torch_products.hpp"

namespace stoker::torch_float_color {

namespace {

using Planes = Planes3Of<float>;

// As torch cuts off: what is no number stays it.
STOKER_INLINED inline float unit(float v) {
  v = v < 0.0f ? 0.0f : v;
  return v > 1.0f ? 1.0f : v;
}

template <bool kHardware, bool kFirst>
STOKER_INLINED inline float grey_of(float r, float g, float b) {
  if constexpr (kFirst) return (0.2989f * r + 0.587f * g) + 0.114f * b;
  return fused<kHardware>(b, 0.114f, fused<kHardware>(g, 0.587f, r * 0.2989f));
}

template <bool kHardware, bool kFirst>
STOKER_INLINED inline float blended(float v, float other, float ratio, float rest) {
  return unit(kFirst ? ratio * v + rest * other : fused<kHardware>(other, rest, v * ratio));
}

template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline void gray_planes(const float* p, int n, float* __restrict to) {
  for (int i = 0; i < n; ++i) to[i] = grey_of<kHardware, kFirst>(p[i], p[i + Planes::kPitch], p[i + 2 * Planes::kPitch]);
}

template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline void saturate_planes(float* __restrict p, int n, float ratio, float rest) {
  for (int i = 0; i < n; ++i) {
    const float r = p[i], g = p[i + Planes::kPitch], b = p[i + 2 * Planes::kPitch];
    const float grey = grey_of<kHardware, kFirst>(r, g, b);
    p[i] = blended<kHardware, kFirst>(r, grey, ratio, rest);
    p[i + Planes::kPitch] = blended<kHardware, kFirst>(g, grey, ratio, rest);
    p[i + 2 * Planes::kPitch] = blended<kHardware, kFirst>(b, grey, ratio, rest);
  }
}

// A row blended with one value.
template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline void blend_row(const float* from, int64_t n, float other, float ratio, float rest,
                                             float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = blended<kHardware, kFirst>(from[i], other, ratio, rest);
}

// Row `from` blended with its smoothed row.
template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline void sharpen_row(const float* from, const float* smooth, int64_t n, float ratio, float rest,
                                               float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    const float v = from[i];
    to[i] = unit(kFirst ? ratio * v + rest * smooth[i] : fused<kHardware>(smooth[i] - v, rest, v));
  }
}

struct Forms {
  void (*gray)(const float* p, int n, float* to);
  void (*saturate)(float* p, int n, float ratio, float rest);
  void (*blend)(const float* from, int64_t n, float other, float ratio, float rest, float* to);
  void (*sharpen)(const float* from, const float* smooth, int64_t n, float ratio, float rest, float* to);
};

template <bool kFirst>
void gray_plain(const float* p, int n, float* to) {
  gray_planes<false, kFirst>(p, n, to);
}
template <bool kFirst>
void saturate_plain(float* p, int n, float ratio, float rest) {
  saturate_planes<false, kFirst>(p, n, ratio, rest);
}
template <bool kFirst>
void blend_plain(const float* from, int64_t n, float other, float ratio, float rest, float* to) {
  blend_row<false, kFirst>(from, n, other, ratio, rest, to);
}
template <bool kFirst>
void sharpen_plain(const float* from, const float* smooth, int64_t n, float ratio, float rest, float* to) {
  sharpen_row<false, kFirst>(from, smooth, n, ratio, rest, to);
}

#if defined(__x86_64__)
#define STOKER_FMA __attribute__((target("avx2,fma")))
template <bool kFirst>
STOKER_FMA void gray_fma(const float* p, int n, float* to) {
  gray_planes<true, kFirst>(p, n, to);
}
template <bool kFirst>
STOKER_FMA void saturate_fma(float* p, int n, float ratio, float rest) {
  saturate_planes<true, kFirst>(p, n, ratio, rest);
}
template <bool kFirst>
STOKER_FMA void blend_fma(const float* from, int64_t n, float other, float ratio, float rest, float* to) {
  blend_row<true, kFirst>(from, n, other, ratio, rest, to);
}
template <bool kFirst>
STOKER_FMA void sharpen_fma(const float* from, const float* smooth, int64_t n, float ratio, float rest, float* to) {
  sharpen_row<true, kFirst>(from, smooth, n, ratio, rest, to);
}
#endif

template <bool kFirst>
Forms forms() {
#if defined(__x86_64__)
  if ((isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma"))
    return {gray_fma<kFirst>, saturate_fma<kFirst>, blend_fma<kFirst>, sharpen_fma<kFirst>};
#endif
  return {gray_plain<kFirst>, saturate_plain<kFirst>, blend_plain<kFirst>, sharpen_plain<kFirst>};
}

Forms forms_of(Generation generation) { return generation == Generation::First ? forms<true>() : forms<false>(); }

float rest_of(double factor) { return static_cast<float>(1.0 - factor); }

float* row_of(const View& v, int64_t y) { return reinterpret_cast<float*>(v.data + y * v.stride[0]); }

// The second generation's values behind the last block of each share, as far as their product with `rest` is rounded.
void blend_ends(const View& src, float other, float ratio, const torch_sum::Order& order, const Blocks& blocks, float rest,
                const View& dst) {
  const int64_t height = src.shape[0], width = src.shape[1], channels = src.shape[2], count = src.elements();
  const int64_t share = torch_sum::share_of(count, order);
  const float added = other * rest;
  for (int64_t first = 0; first < count; first += share) {
    const int64_t size = std::min(share, count - first);
    const int64_t left = size % blocks.size, begin = first + size - left + 1;
    for (int64_t at = begin; at < begin + (left - 1) / 4 * 4; ++at) {
      const int64_t c = blocks.by_pixel ? at % channels : at / (height * width);
      const int64_t pixel = blocks.by_pixel ? at / channels : at % (height * width), y = pixel / width, x = pixel % width;
      const float v = *reinterpret_cast<const float*>(src.data + y * src.stride[0] + x * src.stride[1] + c * src.stride[2]);
      row_of(dst, y)[x * channels + c] = unit(v * ratio + added);
    }
  }
}

}  // namespace

void gray(Generation generation, const View& src, const View& dst) {
  const Forms run = forms_of(generation);
  RowsOf<float> rows(src);
  Planes planes;
  for (int64_t y = 0; y < src.shape[0]; ++y)
    planes.each(rows.row(y), src.shape[1], [&](int64_t x, int n) { run.gray(planes.at[0], n, row_of(dst, y) + x); });
}

void saturate(Generation generation, const View& src, double factor, const View& dst) {
  const Forms run = forms_of(generation);
  RowsOf<float> rows(src);
  Planes planes;
  for (int64_t y = 0; y < src.shape[0]; ++y)
    planes.each(rows.row(y), src.shape[1], [&](int64_t x, int n) {
      run.saturate(planes.at[0], n, static_cast<float>(factor), rest_of(factor));
      planes.put(dst.data + y * dst.stride[0], x, n);
    });
}

void hue(Generation generation, const View& src, double shift, const View& dst) {
  const auto by = static_cast<float>(shift);
  RowsOf<float> rows(src);
  for (int64_t y = 0; y < src.shape[0]; ++y) {
    const float* from = rows.row(y);
    float* to = row_of(dst, y);
    for (int64_t x = 0; x < src.shape[1]; ++x, from += 3, to += 3)
      generation == Generation::First ? torch_color::turned_floats<true>(from, by, to)
                                      : torch_color::turned_floats<false>(from, by, to);
  }
}

bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth, Scratch& work) {
  const float edge = static_cast<float>(1.0 / 13.0), middle = static_cast<float>(5.0 / 13.0);
  const float weights[9] = {edge, edge, edge, edge, middle, edge, edge, edge, edge};
  const int64_t height = src.shape[0], channels = src.shape[2], n = src.shape[1] * channels;
  View inner = dst;
  inner.shape[0] -= 2;
  inner.shape[1] -= 2;
  inner.set_contiguous_strides();
  inner.data = smooth.get(static_cast<size_t>(inner.elements()) * sizeof(float));
  correlate::Window window{weights, 3, 3, 0, 0};
  window.fused = true;
  const auto filter = products ? torch_products::correlate : correlate::correlate;
  if (!filter(src, window, inner, work)) return false;
  const Forms run = forms_of(generation);
  const float ratio = static_cast<float>(factor), rest = rest_of(factor);
  RowsOf<float> rows(src);
  for (int64_t y = 0; y < height; ++y) {
    const float* from = rows.row(y);
    float* to = row_of(dst, y);
    const auto outermost = [&](int64_t i0, int64_t i1) {
      if (generation == Generation::First) run.sharpen(from + i0, from + i0, i1 - i0, ratio, rest, to + i0);
      else std::transform(from + i0, from + i1, to + i0, unit);
    };
    if (y == 0 || y + 1 == height) {
      outermost(0, n);
      continue;
    }
    outermost(0, channels);
    run.sharpen(from + channels, row_of(inner, y - 1), n - 2 * channels, ratio, rest, to + channels);
    outermost(n - channels, n);
  }
  return true;
}

void autocontrast(Generation generation, const View& src, const View& dst) {
  const int64_t channels = src.shape[2], n = src.shape[1] * channels;
  RowsOf<float> rows(src);
  float least[3], most[3], scale[3];
  std::copy_n(rows.row(0), channels, least);
  std::copy_n(least, channels, most);
  for (int64_t y = 0; y < src.shape[0]; ++y) {
    const float* from = rows.row(y);
    for (int64_t i = 0; i < n; i += channels)
      for (int64_t c = 0; c < channels; ++c) {
        least[c] = std::min(least[c], from[i + c]);
        most[c] = std::max(most[c], from[i + c]);
      }
  }
  const bool first = generation == Generation::First;
  for (int64_t c = 0; c < channels; ++c) {
    const float range = most[c] - least[c];
    scale[c] = first ? 1.0f / range : range;
    if (first ? std::isfinite(scale[c]) : most[c] != least[c]) continue;
    least[c] = 0.0f;
    scale[c] = 1.0f;
  }
  for (int64_t y = 0; y < src.shape[0]; ++y) {
    const float* from = rows.row(y);
    float* to = row_of(dst, y);
    for (int64_t i = 0; i < n; i += channels)
      for (int64_t c = 0; c < channels; ++c) {
        const float v = from[i + c] - least[c];
        to[i + c] = unit(first ? v * scale[c] : v / scale[c]);
      }
  }
}

void contrast(Generation generation, const View& src, double factor, const torch_sum::Order& order, const Blocks& blocks,
              const View& dst, Scratch& work) {
  const int64_t height = src.shape[0], width = src.shape[1], pixels = height * width;
  View grey = src;
  grey.shape[2] = 1;
  grey.set_contiguous_strides();
  grey.data = work.get(static_cast<size_t>(pixels) * sizeof(float));
  RowsOf<float> rows(src);
  if (src.shape[2] == 3) torch_float_color::gray(generation, src, grey);
  else
    for (int64_t y = 0; y < height; ++y) std::copy_n(rows.row(y), width, row_of(grey, y));
  const float mean = torch_sum::sum_floats(row_of(grey, 0), pixels, order) / static_cast<float>(pixels);
  const float ratio = static_cast<float>(factor), rest = rest_of(factor);
  const Forms run = forms_of(generation);
  for (int64_t y = 0; y < height; ++y) run.blend(rows.row(y), width * src.shape[2], mean, ratio, rest, row_of(dst, y));
  if (generation == Generation::Second) blend_ends(src, mean, ratio, order, blocks, rest, dst);
}

}  // namespace stoker::torch_float_color
