// SPDX-License-Identifier: Apache-2.0
// Steps of recipes that move pixels one by one, filter them, or store them.
#pragma once
#include "../border.hpp"
#include "../fused.hpp"
#include "../warp_point.hpp"
#include "recipe_frame.cuh"

namespace stoker::recipe::gpu {

// Pad: numbers are left, top, width and height of nothing, fill. PadEdges: the same, with a border.
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
  const auto height = static_cast<int64_t>(s.number[0]), width = static_cast<int64_t>(s.number[1]);
  const int64_t top = height / 2, left = width / 2;
  const auto* weights = array_at<float>(s.extra);
  each(s.out, [&](int64_t y, int64_t x) {
    float sum[3] = {};
    const float* weight = weights;
    for (int64_t i = 0; i < height; ++i) {
      const uint8_t* row = s.in.data + border_position(y - top + i, s.in.height, Border::Reflect101) * s.in.row;
      for (int64_t j = 0; j < width; ++j, ++weight) {
        const uint8_t* p = row + border_position(x - left + j, s.in.width, Border::Reflect101) * s.in.pixel;
        for (int64_t c = 0; c < s.in.channels; ++c)
          sum[c] = fused<true>(static_cast<float>(p[c * s.in.channel]), *weight, sum[c]);
      }
    }
    for (int64_t c = 0; c < s.in.channels; ++c)
      s.out.at(y, x)[c] = warp::to_type<uint8_t>(static_cast<double>(sum[c]));
  });
}

// Means of windows along one axis, which is `step` bytes from pixel to pixel; what is outside is the nearest pixel.
STOKER_STEP void box(const Bitmap& in, const Bitmap& out, bool across, int64_t radius, uint32_t whole, uint32_t part) {
  const int64_t last = (across ? in.width : in.height) - 1, step = across ? in.pixel : in.row;
  each(out, [&](int64_t y, int64_t x) {
    const uint8_t* line = across ? in.at(y, 0) : in.at(0, x);
    const int64_t at = across ? x : y;
    for (int64_t c = 0; c < in.channels; ++c) {
      const auto pixel = [&](int64_t i) {
        return uint32_t{line[std::clamp<int64_t>(i, 0, last) * step + c * in.channel]};
      };
      uint32_t sum = 0;
      for (int64_t i = at - radius; i <= at + radius; ++i) sum += pixel(i);
      const uint32_t ends = pixel(at - radius - 1) + pixel(at + radius + 1);
      out.at(y, x)[c] = static_cast<uint8_t>((sum * whole + ends * part + (1u << 23)) >> 24);
    }
  });
}

STOKER_STEP void blur(const Step& s) {
  const Boxes& b = *array_at<Boxes>(s.extra);
  Bitmap from = s.in;
  int64_t left = b.passes * ((b.radius[0] >= 0) + (b.radius[1] >= 0));
  for (int axis = 0; axis < 2; ++axis)
    for (int64_t pass = 0; pass < b.passes && b.radius[axis] >= 0; ++pass) {
      Bitmap to = s.out;
      if (--left > 0) to.data = reinterpret_cast<uint8_t*>(s.room[left % 2]);
      box(from, to, axis == 0, b.radius[axis], b.whole[axis], b.part[axis]);
      block_barrier();
      from = to;
    }
  if (from.data == s.in.data)
    each_pair(s, [&](const uint8_t* p, uint8_t* to) {
      for (int64_t c = 0; c < s.in.channels; ++c) to[c] = p[c * s.in.channel];
    });
}

// ---- outputs ----

// [C,H,W] of `T`, through a table of them if there is one.
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

STOKER_STEP void store(const Step& s) {
  switch (s.kind) {
    case 1: return store_as<uint8_t>(s);
    case 2: return store_as<uint16_t>(s);
    case 4: return store_as<uint32_t>(s);
    default: return store_as<uint64_t>(s);
  }
}

// Numbers: height and width of the image, window c0 c1 y0 y1 x0 x1, whether all get one value.
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

STOKER_STEP void patch(const Step& s) {
  switch (s.kind) {
    case 1: return patch_as<uint8_t>(s);
    case 2: return patch_as<uint16_t>(s);
    case 4: return patch_as<uint32_t>(s);
    default: return patch_as<uint64_t>(s);
  }
}

}  // namespace stoker::recipe::gpu
