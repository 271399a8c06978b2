// SPDX-License-Identifier: Apache-2.0
// Upsampling of components to full size, four pixels at a time.
#pragma once
#include "shared/jpeg_arithmetic.cuh"
#include "shared/planar_image.cuh"

namespace stoker::planar {

using namespace stoker::gpu;
using jpeg::between, jpeg::clamp_to, jpeg::column_sum;

// A component's samples around the requested pixels.
struct Samples {
  const uint8_t* corner;  // address of sample (0, 0) of the image, which need not be in memory
  uint32_t pitch;
  const Shape& shape;
  int32_t first, last;  // columns that are in memory

  STOKER_DEVICE const uint8_t* line(int32_t y) const { return corner + int64_t{y} * pitch; }
  // Clamp columns beyond the image: the triangle filter repeats the edge.
  STOKER_DEVICE int32_t inside(int32_t x) const { return clamp_to(x, first, last); }
};

STOKER_DEVICE Samples samples_of(const Component& c) {
  return {reinterpret_cast<const uint8_t*>(c.corner), c.pitch, c, c.first, c.last};
}

// Return the second input of output `at`: the previous neighbour for the first of a pair, the next one for the
// second.
STOKER_DEVICE int32_t neighbour(int32_t at, int32_t size) { return clamp_to(at / 2 + (at & 1 ? 1 : -1), 0, size - 1); }

// Compute four outputs of the triangle filter along a line from the four inputs around them; `odd` says whether the
// first output is odd. filter(near, far, second) computes one output, the first or the second of a pair.
template <typename Filter>
STOKER_DEVICE void widen(const int32_t* s, bool odd, int32_t* out, const Filter& filter) {
  out[0] = odd ? filter(s[1], s[2], true) : filter(s[1], s[0], false);
  out[1] = odd ? filter(s[2], s[1], false) : filter(s[1], s[2], true);
  out[2] = odd ? filter(s[2], s[3], true) : filter(s[2], s[1], false);
  out[3] = odd ? filter(s[3], s[2], false) : filter(s[2], s[3], true);
}

struct ByWidth {
  STOKER_DEVICE int32_t operator()(int32_t near, int32_t far, bool second) const {
    return between(near, far, second ? 2 : 1);
  }
};
struct ByBoth {
  STOKER_DEVICE int32_t operator()(int32_t near, int32_t far, bool second) const {
    return jpeg::corner(near, far, second ? 7 : 8);
  }
};

// Compute a component at full size for four pixels from (x, y) on. Values of pixels that do not exist are arbitrary.
STOKER_DEVICE void full_size(const Samples& s, int32_t x, int32_t y, int32_t* out) {
  const Shape& p = s.shape;
  const bool half_x = p.spread == Spread::Width || p.spread == Spread::Both;
  const bool half_y = p.spread == Spread::Height || p.spread == Spread::Both;
  if (p.spread == Spread::Repeat) {
    const uint8_t* const line = s.line(y / p.fy);
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) out[i] = line[s.inside((x + i > 0 ? x + i : 0) / p.fx)];
    return;
  }
  const uint8_t* const near = s.line(half_y ? y / 2 : y);
  const int32_t from = half_x ? (x >> 1) - 1 : x;
  int32_t sample[4], other[4];
  STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) sample[i] = near[s.inside(from + i)];
  if (half_y) {
    const uint8_t* const far = s.line(neighbour(y, p.height));
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) other[i] = far[s.inside(from + i)];
  }
  if (p.spread == Spread::Both) {
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) sample[i] = column_sum(sample[i], other[i]);
    widen(sample, x & 1, out, ByBoth());
  } else if (half_x) {
    widen(sample, x & 1, out, ByWidth());
  } else {
    STOKER_UNROLL for (int32_t i = 0; i < 4; ++i) out[i] =
        half_y ? between(sample[i], other[i], y & 1 ? 2 : 1) : sample[i];
  }
}

// ---- the same in words ----

// Load bytes [x, x + 4) of a line of samples, all of which must be in memory.
STOKER_DEVICE uint32_t load_four(const uint8_t* line, int32_t x) {
  const uint64_t at = reinterpret_cast<uint64_t>(line) + static_cast<uint64_t>(int64_t{x});
  const uint32_t low = *reinterpret_cast<const uint32_t*>(at & ~uint64_t{3});
  const uint32_t high = *reinterpret_cast<const uint32_t*>((at + 3) & ~uint64_t{3});
  return funnel_right(high, low, 8 * static_cast<uint32_t>(at & 3));
}

// Four samples as 16-bit numbers: the first and the third in one word, the others in the other.
struct Quad {
  uint32_t even, odd;
  STOKER_DEVICE int32_t at(int i) const {
    const uint32_t word = i % 2 ? odd : even;
    return static_cast<int32_t>(i / 2 ? word >> 16 : word & 0xFFFF);
  }
};
constexpr uint32_t kBoth = 0x10001, kLowBytes = 0x00FF00FF;

STOKER_DEVICE Quad quad_of(uint32_t bytes) { return {bytes & kLowBytes, bytes >> 8 & kLowBytes}; }

// `between` and `corner` for two values at a time.
STOKER_DEVICE uint32_t between_two(uint32_t near, uint32_t far, uint32_t bias) {
  return (3 * near + far + bias) >> 2 & kLowBytes;
}
STOKER_DEVICE uint32_t corner_two(uint32_t near, uint32_t far, uint32_t bias) {
  return (3 * near + far + bias) >> 4 & kLowBytes;
}

// Compute a component at full size for four pixels from (x, y) on. load(line, x) returns four samples of a line.
template <Spread kSpread, class Load>
STOKER_DEVICE Quad four_samples(const Samples& s, int32_t x, int32_t y, const Load& load) {
  if constexpr (kSpread == Spread::None) return quad_of(load(s.line(y), x));
  if constexpr (kSpread == Spread::Height) {
    const Quad near = quad_of(load(s.line(y / 2), x));
    const Quad far = quad_of(load(s.line(neighbour(y, s.shape.height)), x));
    const uint32_t bias = (y & 1 ? 2 : 1) * kBoth;
    return {between_two(near.even, far.even, bias), between_two(near.odd, far.odd, bias)};
  }
  // Pairs of adjacent inputs: first and second, second and third, third and fourth.
  const uint32_t bytes = load(s.line(kSpread == Spread::Both ? y / 2 : y), (x >> 1) - 1);
  uint32_t left, middle, right;
  if constexpr (kSpread == Spread::Width) {
    left = choose_bytes(bytes, 0, 0x4140);
    middle = choose_bytes(bytes, 0, 0x4241);
    right = choose_bytes(bytes, 0, 0x4342);
  } else {
    const Quad near = quad_of(bytes), far = quad_of(load(s.line(neighbour(y, s.shape.height)), (x >> 1) - 1));
    const uint32_t even = 3 * near.even + far.even, odd = 3 * near.odd + far.odd;
    left = choose_bytes(even, odd, 0x5410);
    middle = choose_bytes(odd, even, 0x7610);
    right = choose_bytes(even, odd, 0x7632);
  }
  const bool second = x & 1;  // the first output is the second of a pair, which uses the next input
  if constexpr (kSpread == Spread::Width)
    return {between_two(middle, second ? right : left, (second ? 2 : 1) * kBoth),
            between_two(second ? right : middle, second ? middle : right, (second ? 1 : 2) * kBoth)};
  else
    return {corner_two(middle, second ? right : left, (second ? 7 : 8) * kBoth),
            corner_two(second ? right : middle, second ? middle : right, (second ? 8 : 7) * kBoth)};
}

// Four pixels: one word per channel.
struct Channels {
  uint32_t red, green, blue;
};

STOKER_DEVICE int32_t signed_byte(uint32_t word, int i) { return static_cast<int8_t>(word >> (8 * i)); }

// Convert four pixels like ycc_to_rgb, with luma as bytes. Sums have 16 fraction bits and include the rounding half.
STOKER_DEVICE Channels convert_four(uint32_t luma, Quad cb, Quad cr) {
  constexpr uint32_t kCentre = 0x00800080;
  const uint32_t blue[2] = {cb.even ^ kCentre, cb.odd ^ kCentre}, red[2] = {cr.even ^ kCentre, cr.odd ^ kCentre};
  int32_t r[4], g[4], b[4];
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    const int32_t from_blue = signed_byte(blue[i % 2], i & 2), from_red = signed_byte(red[i % 2], i & 2);
    const auto y = static_cast<int32_t>(choose_bytes(luma, 0x80, 0x5045u | static_cast<uint32_t>(i) << 8));
    r[i] = y + jpeg::kCrToR * from_red;
    g[i] = y + jpeg::kCrToG * from_red + jpeg::kCbToG * from_blue;
    b[i] = y + jpeg::kCbToB * from_blue;
  }
  return {saturated_upper_four(r[0], r[1], r[2], r[3]), saturated_upper_four(g[0], g[1], g[2], g[3]),
          saturated_upper_four(b[0], b[1], b[2], b[3])};
}

}  // namespace stoker::planar
