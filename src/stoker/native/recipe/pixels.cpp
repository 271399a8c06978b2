// SPDX-License-Identifier: Apache-2.0
#include "recipe/pixels.hpp"

#include <algorithm>
#include <cstring>

#include "base/simd.hpp"
#include "pixel/rows.hpp"

namespace stoker::recipe {

namespace {

template <bool kClip>
[[gnu::always_inline]] inline void saturate_planes(uint8_t* __restrict r, uint8_t* __restrict g, uint8_t* __restrict b,
                                                   int n, float factor) {
  for (int i = 0; i < n; ++i) {
    const int red = r[i], green = g[i], blue = b[i];
    const int gray = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
    const auto blended = [&](int value) __attribute__((always_inline)) {
      float v = static_cast<float>(gray) + factor * static_cast<float>(value - gray);
      if (kClip) v = v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f;  // NaN: 0
      return static_cast<uint8_t>(static_cast<int>(v));
    };
    r[i] = blended(red);
    g[i] = blended(green);
    b[i] = blended(blue);
  }
}

template <bool kClip>
STOKER_WIDE void saturate_wide(uint8_t* r, uint8_t* g, uint8_t* b, int n, float factor) {
  saturate_planes<kClip>(r, g, b, n, factor);
}
template <bool kClip>
void saturate_plain(uint8_t* r, uint8_t* g, uint8_t* b, int n, float factor) {
  saturate_planes<kClip>(r, g, b, n, factor);
}

using SaturatePlanes = void (*)(uint8_t*, uint8_t*, uint8_t*, int, float);

SaturatePlanes choose_saturate(bool within) {
  if (has_wide()) return within ? saturate_wide<false> : saturate_wide<true>;
  return within ? saturate_plain<false> : saturate_plain<true>;
}

void repeat_pixel(const uint8_t* pixel, int64_t channels, int64_t count, uint8_t* to) {
  if (channels == 1) {
    std::memset(to, pixel[0], static_cast<size_t>(count));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < channels; ++c) *to++ = pixel[c];
}

}  // namespace

void copy(const View& from, const View& to) {
  Rows rows(from);
  for (int64_t y = 0; y < from.shape[0]; ++y)
    std::memcpy(to.data + y * to.stride[0], rows.row(y), static_cast<size_t>(rows.bytes()));
}

void pad(const View& from, int64_t left, int64_t top, const uint8_t* color, const View& to) {
  Rows rows(from);
  const int64_t channels = to.shape[2], bytes = to.shape[1] * channels;
  std::vector<uint8_t> blank(static_cast<size_t>(bytes));
  repeat_pixel(color, channels, to.shape[1], blank.data());
  const int64_t begin = left * channels, end = begin + rows.bytes();
  for (int64_t y = 0; y < to.shape[0]; ++y) {
    uint8_t* row = to.data + y * to.stride[0];
    if (y < top || y >= top + from.shape[0]) {
      std::memcpy(row, blank.data(), static_cast<size_t>(bytes));
      continue;
    }
    std::memcpy(row, blank.data(), static_cast<size_t>(begin));
    std::memcpy(row + begin, rows.row(y - top), static_cast<size_t>(rows.bytes()));
    std::memcpy(row + end, blank.data(), static_cast<size_t>(bytes - end));
  }
}

void pad_edges(const View& from, int64_t left, int64_t top, Border border, const View& to) {
  Rows rows(from);
  const int64_t channels = to.shape[2], width = to.shape[1];
  const int64_t begin = std::clamp<int64_t>(left, 0, width);
  const int64_t end = std::clamp<int64_t>(left + from.shape[1], begin, width);
  for (int64_t y = 0; y < to.shape[0]; ++y) {
    const uint8_t* row = rows.row(border_position(y - top, from.shape[0], border));
    uint8_t* out = to.data + y * to.stride[0];
    const auto beyond = [&](int64_t x0, int64_t x1) {
      for (int64_t x = x0; x < x1; ++x) {
        const uint8_t* pixel = row + border_position(x - left, from.shape[1], border) * channels;
        for (int64_t c = 0; c < channels; ++c) out[x * channels + c] = pixel[c];
      }
    };
    beyond(0, begin);
    const auto inside = static_cast<size_t>((end - begin) * channels);
    if (inside > 0) std::memcpy(out + begin * channels, row + (begin - left) * channels, inside);
    beyond(end, width);
  }
}

void saturate(const View& from, float factor, const View& to) {
  const SaturatePlanes blend_planes = choose_saturate(factor >= 0 && factor <= 1);
  Rows rows(from);
  Planes3 planes;
  for (int64_t y = 0; y < from.shape[0]; ++y)
    planes.each(rows.row(y), from.shape[1], [&](int64_t x, int n) {
      blend_planes(planes.at[0], planes.at[1], planes.at[2], n, factor);
      planes.put(to.data + y * to.stride[0], x, n);
    });
}

}  // namespace stoker::recipe
