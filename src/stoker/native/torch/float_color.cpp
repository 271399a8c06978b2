// SPDX-License-Identifier: Apache-2.0
#include "torch/float_color.hpp"

#include <algorithm>
#include <cmath>

#include "base/fused_forms.hpp"
#include "pixel/rows.hpp"
#include "torch/float_sum.hpp"
#include "torch/sharpen.hpp"

namespace stoker::torch_float_color {

namespace {

using Planes = Planes3Of<float>;

// Clamp to [0, 1] as torch does; NaN stays NaN.
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

template <bool kFirst>
struct GrayPlanes {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const float* p, int n, float* __restrict to) {
    for (int i = 0; i < n; ++i)
      to[i] = grey_of<kHardware, kFirst>(p[i], p[i + Planes::kPitch], p[i + 2 * Planes::kPitch]);
  }
};

template <bool kFirst>
struct SaturatePlanes {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(float* __restrict p, int n, float ratio, float rest) {
    for (int i = 0; i < n; ++i) {
      const float r = p[i], g = p[i + Planes::kPitch], b = p[i + 2 * Planes::kPitch];
      const float grey = grey_of<kHardware, kFirst>(r, g, b);
      p[i] = blended<kHardware, kFirst>(r, grey, ratio, rest);
      p[i + Planes::kPitch] = blended<kHardware, kFirst>(g, grey, ratio, rest);
      p[i + 2 * Planes::kPitch] = blended<kHardware, kFirst>(b, grey, ratio, rest);
    }
  }
};

// Blend of a row with one value.
template <bool kFirst>
struct BlendRow {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const float* from, int64_t n, float other, float ratio, float rest,
                                                float* __restrict to) {
    for (int64_t i = 0; i < n; ++i) to[i] = blended<kHardware, kFirst>(from[i], other, ratio, rest);
  }
};

// Blend of row `from` with its smoothed row.
template <bool kFirst>
struct SharpenRow {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const float* from, const float* smooth, int64_t n, float ratio,
                                                float rest, float* __restrict to) {
    for (int64_t i = 0; i < n; ++i) {
      const float v = from[i];
      to[i] = unit(kFirst ? ratio * v + rest * smooth[i] : fused<kHardware>(smooth[i] - v, rest, v));
    }
  }
};

float rest_of(double factor) { return static_cast<float>(1.0 - factor); }

float* row_of(const View& v, int64_t y) { return reinterpret_cast<float*>(v.data + y * v.stride[0]); }

// Compute the second generation's values after the last block of each share, whose products with `rest` are rounded.
void blend_ends(const View& src, float other, float ratio, const torch_sum::Order& order, const Blocks& blocks,
                float rest, const View& dst) {
  const int64_t height = src.shape[0], width = src.shape[1], channels = src.shape[2], count = src.elements();
  const int64_t share = torch_sum::share_of(count, order);
  const float added = other * rest;
  for (int64_t first = 0; first < count; first += share) {
    const int64_t size = std::min(share, count - first);
    const int64_t left = size % blocks.size, begin = first + size - left + 1;
    for (int64_t at = begin; at < begin + (left - 1) / 4 * 4; ++at) {
      const int64_t c = blocks.by_pixel ? at % channels : at / (height * width);
      const int64_t pixel = blocks.by_pixel ? at / channels : at % (height * width), y = pixel / width,
                    x = pixel % width;
      const float v =
          *reinterpret_cast<const float*>(src.data + y * src.stride[0] + x * src.stride[1] + c * src.stride[2]);
      row_of(dst, y)[x * channels + c] = unit(v * ratio + added);
    }
  }
}

}  // namespace

void gray(Generation generation, const View& src, const View& dst) {
  const auto run = form_of<GrayPlanes>(generation == Generation::First);
  RowsOf<float> rows(src);
  Planes planes;
  for (int64_t y = 0; y < src.shape[0]; ++y)
    planes.each(rows.row(y), src.shape[1], [&](int64_t x, int n) { run(planes.at[0], n, row_of(dst, y) + x); });
}

void saturate(Generation generation, const View& src, double factor, const View& dst) {
  const auto run = form_of<SaturatePlanes>(generation == Generation::First);
  RowsOf<float> rows(src);
  Planes planes;
  for (int64_t y = 0; y < src.shape[0]; ++y)
    planes.each(rows.row(y), src.shape[1], [&](int64_t x, int n) {
      run(planes.at[0], n, static_cast<float>(factor), rest_of(factor));
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

bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth,
             Scratch& work) {
  const float ratio = static_cast<float>(factor), rest = rest_of(factor);
  const bool first = generation == Generation::First;
  const auto run = form_of<SharpenRow>(first);
  return torch_color::sharpen_rows<float>(
      src, products, dst, smooth, work,
      [&](const float* from, const float* smoothed, int64_t n, float* to) { run(from, smoothed, n, ratio, rest, to); },
      [&](const float* from, int64_t n, float* to) {
        if (first) run(from, from, n, ratio, rest, to);
        else std::transform(from, from + n, to, [](float v) { return unit(v); });
      });
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

void contrast(Generation generation, const View& src, double factor, const torch_sum::Order& order,
              const Blocks& blocks, const View& dst, Scratch& work) {
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
  const auto run = form_of<BlendRow>(generation == Generation::First);
  for (int64_t y = 0; y < height; ++y) run(rows.row(y), width * src.shape[2], mean, ratio, rest, row_of(dst, y));
  if (generation == Generation::Second) blend_ends(src, mean, ratio, order, blocks, rest, dst);
}

}  // namespace stoker::torch_float_color
