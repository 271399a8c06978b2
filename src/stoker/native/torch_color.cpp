// SPDX-License-Identifier: Apache-2.0
#include "torch_color.hpp"

#include <algorithm>
#include <cmath>

#include "correlate.hpp"
#include "fused.hpp"
#include "simd.hpp"
#include "xmath.hpp"

namespace stoker::torch_color {

namespace {

template <bool kHardware>
[[gnu::always_inline]] inline float luma(const uint8_t* p, int64_t step) {
  const auto at = [&](int c) { return static_cast<float>(p[c * step]); };
  return fused<kHardware>(at(2), 0.114f, fused<kHardware>(at(1), 0.587f, at(0) * 0.2989f));
}

// The first generation's grey.
[[gnu::always_inline]] inline int first_luma(const uint8_t* p, int64_t step) {
  const auto at = [&](int c) { return static_cast<float>(p[c * step]); };
  return static_cast<int>((0.2989f * at(0) + 0.587f * at(1)) + 0.114f * at(2));
}

uint8_t byte(float v) { return static_cast<uint8_t>(v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f); }  // NaN: 0

template <class F>
[[gnu::always_inline]] inline void each(const View& src, const View& dst, F&& f) {
  for (int64_t y = 0; y < src.shape[0]; ++y)
    for (int64_t x = 0; x < src.shape[1]; ++x)
      f(src.data + y * src.stride[0] + x * src.stride[1], dst.data + y * dst.stride[0] + x * dst.stride[1]);
}

// The first generation's blend.
[[gnu::always_inline]] inline uint8_t first_blend(float v, float other, float ratio, float rest) {
  return byte(ratio * v + rest * other);
}

// One pixel in torchvision's `adjust_hue`, operation by operation.
void turned(const uint8_t* p, int64_t step, float shift, uint8_t* to) {
  const float unit = static_cast<float>(1.0 / 255.0);
  const float r = static_cast<float>(p[0]) * unit, g = static_cast<float>(p[step]) * unit;
  const float b = static_cast<float>(p[2 * step]) * unit;
  const float most = std::max(r, std::max(g, b)), least = std::min(r, std::min(g, b)), range = most - least;
  const bool flat = most == least;
  const float s = range / (flat ? 1.0f : most), divisor = flat ? 1.0f : range;
  const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
  const bool by_red = most == r, by_green = most == g && !by_red;
  const float hr = (bc - gc) * (by_red ? 1.0f : 0.0f);
  const float hg = ((rc + 2.0f) - bc) * (by_green ? 1.0f : 0.0f);
  const float hb = ((gc + 4.0f) - rc) * (!by_red && !by_green ? 1.0f : 0.0f);
  float h = (hr + hg) + hb;
  // Remainders of 1: what is subtracted is whole, and nothing is rounded.
  h = h * static_cast<float>(1.0 / 6.0) + 1.0f;
  h -= std::floor(h);
  h += shift;
  h -= std::trunc(h);
  if (h < 0) h += 1.0f;
  const float h6 = h * 6.0f, whole = std::floor(h6), f = h6 - whole;
  const auto unit_range = [](float v) { return std::clamp(v, 0.0f, 1.0f); };
  const float sxf = s * f, rest = 1.0f - s;
  const float q = unit_range((1.0f - sxf) * most), t = unit_range((sxf + rest) * most), v = most;
  const float low = unit_range(rest * most);
  const float of[6][3] = {{v, t, low}, {q, v, low}, {low, v, t}, {low, q, v}, {t, low, v}, {v, low, q}};
  const float* rgb = of[static_cast<int>(whole) % 6];
  for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(rgb[c] * static_cast<float>(255.0 + 1.0 - 1e-3));
}

template <bool kHardware>
[[gnu::always_inline]] inline void gray_pixels(const View& src, const View& dst) {
  each(src, dst, [&](const uint8_t* p, uint8_t* to) __attribute__((always_inline)) {
    *to = static_cast<uint8_t>(luma<kHardware>(p, src.stride[2]));
  });
}

template <bool kHardware>
[[gnu::always_inline]] inline void saturate_pixels(const View& src, float ratio, float other, const View& dst) {
  each(src, dst, [&](const uint8_t* p, uint8_t* to) __attribute__((always_inline)) {
    // Below 255: the conversion rounds down.
    const float grey = static_cast<float>(static_cast<int>(luma<kHardware>(p, src.stride[2])));
    for (int c = 0; c < 3; ++c)
      to[c] = byte(fused<kHardware>(grey, other, static_cast<float>(p[c * src.stride[2]]) * ratio));
  });
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
STOKER_FMA void gray_fma(const View& src, const View& dst) { gray_pixels<true>(src, dst); }
STOKER_FMA void saturate_fma(const View& src, float ratio, float other, const View& dst) {
  saturate_pixels<true>(src, ratio, other, dst);
}
STOKER_FMA int64_t sum_grey_fma(const View& src) { return sum_grey<true>(src); }
bool has_fma() { return (isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

void gray(Generation generation, const View& src, const View& dst) {
  if (generation == Generation::First)
    return each(src, dst,
                [&](const uint8_t* p, uint8_t* to) { *to = static_cast<uint8_t>(first_luma(p, src.stride[2])); });
#if defined(__x86_64__)
  if (has_fma()) return gray_fma(src, dst);
#endif
  gray_pixels<false>(src, dst);
}

void saturate(Generation generation, const View& src, double factor, const View& dst) {
  const float ratio = static_cast<float>(factor), other = static_cast<float>(1.0 - factor);
  if (generation == Generation::First)
    return each(src, dst, [&](const uint8_t* p, uint8_t* to) {
      const auto grey = static_cast<float>(first_luma(p, src.stride[2]));
      for (int c = 0; c < 3; ++c) to[c] = first_blend(static_cast<float>(p[c * src.stride[2]]), grey, ratio, other);
    });
#if defined(__x86_64__)
  if (has_fma()) return saturate_fma(src, ratio, other, dst);
#endif
  saturate_pixels<false>(src, ratio, other, dst);
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
  const auto pixels = static_cast<float>(src.shape[0] * src.shape[1]);
  if (generation == Generation::First) {
    int64_t total = 0;
    each(src, src, [&](const uint8_t* p, uint8_t*) {
      total += src.shape[2] == 3 ? first_luma(p, src.stride[2]) : int{*p};
    });
    const float mean = static_cast<float>(total) / pixels;
    for (int i = 0; i < 256; ++i) table[i] = first_blend(static_cast<float>(i), mean, ratio, other);
    return;
  }
#if defined(__x86_64__)
  const int64_t sum = has_fma() ? sum_grey_fma(src) : sum_grey<false>(src);
#else
  const int64_t sum = sum_grey<false>(src);
#endif
  const float mean = static_cast<float>(sum) / pixels;
  for (int i = 0; i < 256; ++i) table[i] = byte(fused_plain(mean, other, static_cast<float>(i) * ratio));
}

void autocontrast_table(const int64_t counts[256], uint8_t table[256]) {
  int low = 0, high = 255;
  while (low < 255 && !counts[low]) ++low;
  while (high > 0 && !counts[high]) --high;
  const bool flat = high <= low;
  const float least = flat ? 0.0f : static_cast<float>(low);
  const float scale = flat ? 1.0f : static_cast<float>(high - low) * static_cast<float>(1.0 / 255.0);
  for (int i = 0; i < 256; ++i) table[i] = byte((static_cast<float>(i) - least) / scale);
}

void first_autocontrast_table(const int64_t counts[256], uint8_t table[256]) {
  int low = 0, high = 255;
  while (low < 255 && !counts[low]) ++low;
  while (high > 0 && !counts[high]) --high;
  const bool flat = high <= low;
  const float least = flat ? 0.0f : static_cast<float>(low);
  const float scale = flat ? 1.0f : (1.0f / static_cast<float>(high - low)) * 255.0f;  // as torch divides a number
  for (int i = 0; i < 256; ++i) table[i] = byte((static_cast<float>(i) - least) * scale);
}

}  // namespace stoker::torch_color
