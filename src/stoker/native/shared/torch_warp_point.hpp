// SPDX-License-Identifier: Apache-2.0
// Sampling of one pixel as in torch's grid_sample (torch/warp.hpp). Plain C++ that compiles for the CPU and for a GPU.
// For `kHardware` see fused.hpp.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared/bitmap.hpp"
#include "shared/fused.hpp"

namespace stoker::torch_warp {

// Source position of an output pixel; -1 and 1 are the image's edges. Products are added by fused multiply-adds, as in
// torch's matrix products. X and Y are the pixel's centre relative to the middle of the output, or to its corner if
// `projective`:
//   x = X m[0] + Y m[1] + m[2], y = X m[3] + Y m[4] + m[5]; if projective, divided by (X m[6] + Y m[7] + 1), minus 1.
struct Grid {
  float m[8];
  bool projective;
  const float* given = nullptr;  // if set, the positions themselves: [height,width,2] of (x, y)
};

struct Fill {
  bool has;  // else pixels outside of the image count as zeros
  float value[3];
  bool first = false;  // blend as torchvision's first generation does, if `linear`
};

// Blend an interpolated value with the fill value; `mask` is the share of its weight inside of the image.
STOKER_INLINED inline float filled(float v, float mask, float value, bool first) {
  return first ? v * mask + (1.0f - mask) * value : (v - value) * mask + value;
}

struct Point {
  float x, y;
};

template <bool kHardware>
STOKER_INLINED inline Point look(const Grid& g, float x, float y) {
  const float* m = g.m;
  const float u = fused<kHardware>(y, m[1], x * m[0]) + m[2], v = fused<kHardware>(y, m[4], x * m[3]) + m[5];
  if (!g.projective) return {u, v};
  const float w = fused<kHardware>(y, m[7], x * m[6]) + 1.0f;
  return {u / w - 1.0f, v / w - 1.0f};
}

STOKER_INLINED inline uint8_t byte(float v) {
  const float whole = std::nearbyint(v);
  return static_cast<uint8_t>(whole > 0.0f ? (whole < 255.0f ? whole : 255.0f) : 0.0f);  // NaN: 0
}

// Store a sampled value in the image's type: rounded to a byte, or as a float.
STOKER_INLINED inline void keep(float v, uint8_t* to) { *to = byte(v); }
STOKER_INLINED inline void keep(float v, float* to) { *to = v; }

// A neighbour: its weight and its address, which is null outside of the image.
struct Neighbour {
  const uint8_t* p;
  float weight;
};

STOKER_INLINED inline const uint8_t* at(const Bitmap& src, float x, float y) {
  if (!(x > -1.0f && x < static_cast<float>(src.width) && y > -1.0f && y < static_cast<float>(src.height)))
    return nullptr;
  return src.at(static_cast<int64_t>(y), static_cast<int64_t>(x));
}

template <bool kHardware, class T>
STOKER_INLINED inline void linear(const Bitmap& src, float x, float y, const Fill& fill, T* to) {
  const float left = std::floor(x), top = std::floor(y);
  const float w = x - left, e = 1.0f - w, n = y - top, s = 1.0f - n;
  const Neighbour near[4] = {{at(src, left, top), e * s},
                             {at(src, left + 1.0f, top), w * s},
                             {at(src, left, top + 1.0f), e * n},
                             {at(src, left + 1.0f, top + 1.0f), w * n}};
  const auto sum = [&](auto&& value) STOKER_INLINED_LAMBDA {
    float total = value(near[0].p) * near[0].weight;
    for (int i = 1; i < 4; ++i) total = fused<kHardware>(value(near[i].p), near[i].weight, total);
    return total;
  };
  const float mask = fill.has ? sum([](const uint8_t* p) { return p ? 1.0f : 0.0f; }) : 1.0f;
  for (int64_t c = 0; c < src.channels; ++c) {
    const int64_t channel = c * src.channel;
    const float v =
        sum([&](const uint8_t* p) { return p ? static_cast<float>(*reinterpret_cast<const T*>(p + channel)) : 0.0f; });
    keep(fill.has ? filled(v, mask, fill.value[c], fill.first) : v, to + c);
  }
}

template <class T>
STOKER_INLINED inline void nearest(const Bitmap& src, float x, float y, const Fill& fill, T* to) {
  const uint8_t* p = at(src, std::nearbyint(x), std::nearbyint(y));
  for (int64_t c = 0; c < src.channels; ++c) {
    if (p) to[c] = *reinterpret_cast<const T*>(p + c * src.channel);
    else keep(fill.has ? fill.value[c] : 0.0f, to + c);
  }
}

// Values that all pixels of an output share.
struct Middle {
  float x0, y0, half_width, half_height;
  Middle(const Bitmap& src, bool projective, int64_t height, int64_t width)
      : x0(centre(projective, width)),
        y0(centre(projective, height)),
        half_width(static_cast<float>(src.width) / 2),
        half_height(static_cast<float>(src.height) / 2) {}
  static float centre(bool projective, int64_t size) {
    return static_cast<float>(projective ? 0.5 : (1.0 - static_cast<double>(size)) * 0.5);
  }
};

// Sample output pixel (i, j), whose channels are adjacent. T is the element type of both images, bytes or floats.
template <bool kHardware, bool kLinear, class T>
STOKER_INLINED inline void sample_pixel(const Bitmap& src, const Grid& g, const Middle& m, const Fill& fill,
                                        const float* given, int64_t i, int64_t j, T* to) {
  const Point p = given ? Point{given[2 * i], given[2 * i + 1]}
                        : look<kHardware>(g, static_cast<float>(i) + m.x0, static_cast<float>(j) + m.y0);
  const float x = fused<kHardware>(p.x + 1.0f, m.half_width, -0.5f);
  const float y = fused<kHardware>(p.y + 1.0f, m.half_height, -0.5f);
  if constexpr (kLinear) linear<kHardware>(src, x, y, fill, to);
  else nearest(src, x, y, fill, to);
}

}  // namespace stoker::torch_warp
