// SPDX-License-Identifier: Apache-2.0
// Recipe steps that move pixels, filter them, or store them.
#pragma once
#include "device/recipe_frame.cuh"
#include "shared/border.hpp"
#include "shared/fused.hpp"
#include "shared/warp_point.hpp"

namespace stoker::recipe::gpu {

// Pad: the numbers are left, top, unused width and height, fill. PadEdges: the same, with a border mode.
STOKER_STEP void pad(const Step& s) {
  const auto left = static_cast<int64_t>(s.number[0]), top = static_cast<int64_t>(s.number[1]);
  const auto border = static_cast<Border>(s.kind);
  each(s.out, [&](int64_t y, int64_t x) {
    const int64_t from_y = border_position(y - top, s.in.height, border);
    const int64_t from_x = border_position(x - left, s.in.width, border);
    uint8_t* to = s.out.at(y, x);
    if (from_y < 0 || from_x < 0) {
      for (int64_t c = 0; c < s.out.channels; ++c) to[c] = static_cast<uint8_t>(s.number[2 + c]);
      return;
    }
    const uint8_t* from = s.in.at(from_y, from_x);
    for (int64_t c = 0; c < s.out.channels; ++c) to[c] = from[c * s.in.channel];
  });
}

// ---- filters ----

STOKER_STEP void correlate(const Step& s) {
  const auto height = static_cast<int32_t>(s.number[0]), width = static_cast<int32_t>(s.number[1]);
  const auto* weights = array_at<float>(s.extra);
  const Picture in(s.in), out(s.out);
  const auto channels = static_cast<int32_t>(s.in.channels);
  each(s.out.height, s.out.width, [&](int32_t y, int32_t x) {
    float sum[3] = {};
    const float* weight = weights;
    for (int32_t i = 0; i < height; ++i) {
      const int32_t row = border_position(y - height / 2 + i, static_cast<int32_t>(s.in.height), Border::Reflect101);
      STOKER_NO_UNROLL
      for (int32_t j = 0; j < width; ++j, ++weight) {
        const int32_t column = border_position(x - width / 2 + j, static_cast<int32_t>(s.in.width), Border::Reflect101);
        const uint8_t* p = in.at(row, column);
        for (int32_t c = 0; c < 3; ++c)
          if (c < channels) sum[c] = fused<true>(static_cast<float>(p[c * in.channel]), *weight, sum[c]);
      }
    }
    uint8_t* to = out.at(y, x);
    for (int32_t c = 0; c < 3; ++c)
      if (c < channels) to[c] = warp::to_type<uint8_t>(static_cast<double>(sum[c]));
  });
}

inline int32_t passes_across(const Boxes& b) { return b.radius[0] >= 0 ? static_cast<int32_t>(b.passes) : 0; }
inline int32_t passes_of(const Boxes& b) {
  return passes_across(b) + (b.radius[1] >= 0 ? static_cast<int32_t>(b.passes) : 0);
}

// Box blur: means of windows along one axis, with pixels outside of the image equal to the nearest pixel. Every pass is
// a phase; all passes but the last one write to a scratch buffer.
STOKER_STEP void box(const Step& s, int32_t pass) {
  const Boxes& b = *array_at<Boxes>(s.extra);
  const bool across = pass < passes_across(b);
  const int32_t left = passes_of(b) - pass;
  Picture in(s.in), out(s.out);
  if (pass > 0) in = out, in.data = reinterpret_cast<uint8_t*>(s.scratch[left % 2]);
  if (left > 1) out.data = reinterpret_cast<uint8_t*>(s.scratch[(left - 1) % 2]);
  const int32_t last = static_cast<int32_t>(across ? s.in.width : s.in.height) - 1, step = across ? in.pixel : in.row;
  const int32_t channels = static_cast<int32_t>(s.in.channels), axis = across ? 0 : 1;
  const auto radius = static_cast<int32_t>(b.radius[axis]);
  const uint32_t whole = b.whole[axis], part = b.part[axis];
  each(s.out.height, s.out.width, [&](int32_t y, int32_t x) {
    const uint8_t* line = across ? in.at(y, 0) : in.at(0, x);
    const int32_t at = across ? x : y;
    for (int32_t c = 0; c < channels; ++c) {
      const auto pixel = [&](int32_t i) { return uint32_t{line[std::clamp(i, 0, last) * step + c * in.channel]}; };
      uint32_t sum = 0;
      for (int32_t i = at - radius; i <= at + radius; ++i) sum += pixel(i);
      const uint32_t ends = pixel(at - radius - 1) + pixel(at + radius + 1);
      out.at(y, x)[c] = static_cast<uint8_t>((sum * whole + ends * part + (1u << 23)) >> 24);
    }
  });
}

inline int32_t phases_of_blur(const Step& s) { return std::max(passes_of(*array_at<Boxes>(s.extra)), 1); }

inline void blur(const Step& s, int32_t phase) {
  if (passes_of(*array_at<Boxes>(s.extra)) == 0) return copy(s);
  return box(s, phase);
}

// ---- outputs ----

// Store as [C,H,W] of `T`, through a table of `T` if there is one.
template <class T>
STOKER_STEP void store_as(const Step& s) {
  const auto* table = array_at<T>(s.extra);
  T* const to = reinterpret_cast<T*>(s.out.data);
  const int64_t plane = s.in.height * s.in.width, per_channel = s.number[0] != 0 ? 256 : 0;
  each(s.in, [&](int64_t y, int64_t x) {
    const uint8_t* from = s.in.at(y, x);
    for (int64_t c = 0; c < s.in.channels; ++c) {
      const uint8_t v = from[c * s.in.channel];
      to[c * plane + y * s.in.width + x] = table ? table[c * per_channel + v] : static_cast<T>(v);
    }
  });
}

inline void store(const Step& s) {
  switch (s.kind) {
    case 1: return store_as<uint8_t>(s);
    case 2: return store_as<uint16_t>(s);
    case 4: return store_as<uint32_t>(s);
    default: return store_as<uint64_t>(s);
  }
}

// Numbers: height and width of the image, window c0 c1 y0 y1 x0 x1, and whether a single value fills the window.
template <class T>
STOKER_STEP void patch_as(const Step& s) {
  const auto at = [&](int i) { return static_cast<int64_t>(s.number[i]); };
  const int64_t c0 = at(2), y0 = at(4), x0 = at(6);
  const Bitmap window{nullptr, at(5) - y0, at(7) - x0, at(3) - c0, 0, 0, 0};
  const auto* values = array_at<T>(s.extra);
  T* const to = reinterpret_cast<T*>(s.out.data);
  each(window, [&](int64_t y, int64_t x) {
    for (int64_t c = 0; c < window.channels; ++c) {
      const int64_t from = s.number[8] != 0 ? 0 : (c * window.height + y) * window.width + x;
      to[((c0 + c) * at(0) + y0 + y) * at(1) + x0 + x] = values[from];
    }
  });
}

inline void patch(const Step& s) {
  switch (s.kind) {
    case 1: return patch_as<uint8_t>(s);
    case 2: return patch_as<uint16_t>(s);
    case 4: return patch_as<uint32_t>(s);
    default: return patch_as<uint64_t>(s);
  }
}

}  // namespace stoker::recipe::gpu
