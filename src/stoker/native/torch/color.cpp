// SPDX-License-Identifier: Apache-2.0
#include "torch/color.hpp"

#include <algorithm>
#include <cmath>

#include "base/fused_forms.hpp"
#include "pixel/rows.hpp"
#include "torch/sharpen.hpp"

namespace stoker::torch_color {

namespace {

template <class F>
[[gnu::always_inline]] inline void each(const View& src, const View& dst, F&& f) {
  for (int64_t y = 0; y < src.shape[0]; ++y)
    for (int64_t x = 0; x < src.shape[1]; ++x)
      f(src.data + y * src.stride[0] + x * src.stride[1], dst.data + y * dst.stride[0] + x * dst.stride[1]);
}

// Grey values of three channels in planes, for both generations.
template <bool kHardware, bool kFirst>
[[gnu::always_inline]] inline int grey_of(const uint8_t* p) {
  if constexpr (kFirst) return first_luma(p, Planes3::kPitch);
  return static_cast<int>(luma<kHardware>(p, Planes3::kPitch));  // below 255: the conversion rounds down
}

template <bool kFirst>
struct GrayPlanes {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const uint8_t* p, int n, uint8_t* __restrict to) {
    for (int i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(grey_of<kHardware, kFirst>(p + i));
  }
};

template <bool kFirst>
struct SaturatePlanes {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(uint8_t* p, int n, float ratio, float other) {
    for (int i = 0; i < n; ++i) {
      const auto grey = static_cast<float>(grey_of<kHardware, kFirst>(p + i));
      for (int c = 0; c < 3; ++c) {
        uint8_t& value = p[i + c * Planes3::kPitch];
        const auto v = static_cast<float>(value);
        value = kFirst ? first_blend(v, grey, ratio, other) : blend<kHardware>(v, grey, ratio, other);
      }
    }
  }
};

// Blend of a row with its smoothed row.
template <bool kFirst>
struct SharpenRow {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const uint8_t* from, const float* smooth, int64_t n, float ratio,
                                                float other, uint8_t* __restrict to) {
    for (int64_t i = 0; i < n; ++i) {
      const float v = from[i], round = std::nearbyint(smooth[i]);
      const float whole = round > 0.0f ? (round < 255.0f ? round : 255.0f) : 0.0f;
      to[i] = kFirst ? first_blend(v, whole, ratio, other) : byte(fused<kHardware>(round - v, other, v));
    }
  }
};

}  // namespace

// Call f(values, count) with the grey values of an image in order, a chunk at a time.
template <class F>
void each_grey(Generation generation, const View& src, F&& f) {
  const auto run = form_of<GrayPlanes>(generation == Generation::First);
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
  float sums[torch_sum::kMaxThreads];
  uint32_t at[torch_sum::kAccumulators] = {};
  int64_t shares = 0, i = 0, count = std::min(share, pixels);
  torch_sum::Accumulators places(count, order.lanes);
  each_grey(generation, src, [&](const uint8_t* values, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      at[places.of(i)] += values[k];
      if (++i < count) continue;
      sums[shares++] = torch_sum::folded(at, order.lanes);
      std::fill_n(at, torch_sum::kAccumulators, 0u);
      count = std::min(share, pixels - shares * share);
      places = torch_sum::Accumulators(count, order.lanes);
      i = 0;
    }
  });
  float room[torch_sum::kAccumulators];
  return torch_sum::folded_shares(sums, shares, order, room);
}

void gray(Generation generation, const View& src, const View& dst) {
  const auto run = form_of<GrayPlanes>(generation == Generation::First);
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
  const auto run = form_of<SaturatePlanes>(generation == Generation::First);
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
  if (generation == Generation::First)
    each(src, dst, [&](const uint8_t* p, uint8_t* to) { turned<true>(p, step, by, to); });
  else each(src, dst, [&](const uint8_t* p, uint8_t* to) { turned<false>(p, step, by, to); });
}

bool sharpen(Generation generation, const View& src, double factor, bool products, const View& dst, Scratch& smooth,
             Scratch& work) {
  const float ratio = static_cast<float>(factor), other = static_cast<float>(1.0 - factor);
  const bool first = generation == Generation::First;
  const auto run = form_of<SharpenRow>(first);
  return sharpen_rows<uint8_t>(
      src, products, dst, smooth, work,
      [&](const uint8_t* from, const float* smoothed, int64_t n, uint8_t* to) {
        run(from, smoothed, n, ratio, other, to);
      },
      [&](const uint8_t* from, int64_t n, uint8_t* to) {
        if (first) std::transform(from, from + n, to, [&](uint8_t v) { return first_blend(v, v, ratio, other); });
        else std::copy_n(from, n, to);
      });
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
