// SPDX-License-Identifier: Apache-2.0
// Pixels of a picture that a GPU's video engines have decoded: luma, and pairs of chroma samples for 2 x 2 pixels. The
// arithmetic is that of video/convert.cpp, of which this is the form for a GPU.
//
// Samples of more than eight bits are in the upper bits of words. A thread computes some pixels of a row of the turned
// image, and a launch converts one or two pictures of the same form.
#pragma once
#include "shared/device.cuh"

namespace stoker::video {

constexpr int kFrameFractionBits = 13;  // kFractionBits of video/convert.hpp
constexpr uint32_t kFramePixels = 4;    // of a thread

// Numbers are in pairs: low and high halves. `size`: width and height; `chroma`: pitch of a row in bytes, and rows
// before those of chroma; the last of `weights`: the zero of chroma.
struct FrameArguments {
  uint64_t surface[2], out[2], chroma, size, corner, kind, weights[4];

  STOKER_DEVICE static int32_t low(uint64_t packed) { return static_cast<int32_t>(packed & 0xFFFFFFFFu); }
  STOKER_DEVICE static int32_t high(uint64_t packed) { return static_cast<int32_t>(packed >> 32); }
  STOKER_DEVICE bool is_planar() const { return (kind >> 25 & 1) != 0; }
};

struct FrameSamples {
  int32_t y[kFramePixels], u[kFramePixels], v[kFramePixels];
};

template <class Sample>
STOKER_DEVICE void load_pixel(FrameSamples& s, uint32_t k, uint64_t luma, uint64_t chroma, int32_t x, int unused_bits) {
  const auto* pair = reinterpret_cast<const Sample*>(chroma) + (x & ~1);
  s.y[k] = reinterpret_cast<const Sample*>(luma)[x] >> unused_bits;
  s.u[k] = pair[0] >> unused_bits;
  s.v[k] = pair[1] >> unused_bits;
}

// Load the samples of `count` pixels from column j of row i of the turned image.
STOKER_DEVICE void load_pixels(FrameSamples& s, const FrameArguments& a, uint64_t surface, int32_t i, int32_t j,
                               uint32_t count) {
  const int32_t width = a.low(a.size), height = a.high(a.size);
  const int turns = static_cast<int>(a.kind & 3), bits = static_cast<int>(a.kind >> 16 & 255);
  const auto pitch = static_cast<uint64_t>(static_cast<uint32_t>(a.low(a.chroma)));
  const uint64_t chroma_plane = surface + static_cast<uint64_t>(static_cast<uint32_t>(a.high(a.chroma))) * pitch;
  const auto luma_of = [&](int32_t y) { return surface + static_cast<uint64_t>(y) * pitch; };
  const auto chroma_of = [&](int32_t y) { return chroma_plane + static_cast<uint64_t>(y >> 1) * pitch; };
  if (turns == 0 && bits == 8 && count == kFramePixels) {
    const int32_t y = i + a.high(a.corner), x = j + a.low(a.corner);
    const uint64_t luma = luma_of(y) + static_cast<uint64_t>(x), chroma = chroma_of(y) + static_cast<uint64_t>(x);
    if (((luma | chroma) & 3) == 0 && (x & 1) == 0) {
      const uint32_t four = *reinterpret_cast<const uint32_t*>(luma),
                     pairs = *reinterpret_cast<const uint32_t*>(chroma);
      STOKER_UNROLL for (uint32_t k = 0; k < kFramePixels; ++k) {
        s.y[k] = static_cast<int32_t>(four >> 8 * k & 255u);
        s.u[k] = static_cast<int32_t>(pairs >> 16 * (k / 2) & 255u);
        s.v[k] = static_cast<int32_t>(pairs >> (16 * (k / 2) + 8) & 255u);
      }
      return;
    }
  }
  STOKER_UNROLL for (uint32_t k = 0; k < kFramePixels; ++k) {
    const int32_t own = j + static_cast<int32_t>(k < count ? k : count - 1);
    const int32_t row = turns == 0 ? i : turns == 1 ? own : turns == 2 ? height - 1 - i : height - 1 - own;
    const int32_t column = turns == 0 ? own : turns == 1 ? width - 1 - i : turns == 2 ? width - 1 - own : i;
    const int32_t y = row + a.high(a.corner), x = column + a.low(a.corner);
    if (bits > 8) load_pixel<uint16_t>(s, k, luma_of(y), chroma_of(y), x, 16 - bits);
    else load_pixel<uint8_t>(s, k, luma_of(y), chroma_of(y), x, 0);
  }
}

// Return the channels of a pixel, before they are limited to the range of Pixel. Products of bytes' weights fit 32 bits.
template <class Pixel, class Wide>
STOKER_DEVICE void channels_of(const FrameArguments& a, int32_t y, int32_t u, int32_t v, int extra, Wide (&c)[3]) {
  const int order = static_cast<int>(a.kind >> 8 & 255);
  if (order == 2) {  // as stored
    const int32_t samples[3] = {y, u, v};
    const int32_t half = sizeof(Pixel) == 2 ? 0 : (1 << extra) >> 1;
    STOKER_UNROLL for (int i = 0; i < 3; ++i) c[i] =
        sizeof(Pixel) == 2 ? samples[i] << (8 - extra) : (samples[i] + half) >> extra;
    return;
  }
  const int shift = kFrameFractionBits + extra;
  const Wide du = u - a.low(a.weights[3]), dv = v - a.low(a.weights[3]);
  const Wide base = static_cast<Wide>(a.low(a.weights[0])) * (y - a.high(a.weights[2])) + (Wide{1} << (shift - 1));
  const Wide red = (base + a.high(a.weights[0]) * dv) >> shift, blue = (base + a.low(a.weights[2]) * du) >> shift;
  c[0] = order == 1 ? blue : red;
  c[1] = (base + a.low(a.weights[1]) * du + a.high(a.weights[1]) * dv) >> shift;
  c[2] = order == 1 ? red : blue;
}

// Write `count` bytes of each channel from pixel `at`. The channels of an image follow each other, or its planes.
STOKER_DEVICE void write_bytes(const FrameArguments& a, uint64_t out, const FrameSamples& s, uint32_t at,
                               uint32_t count, int extra, uint64_t pixels) {
  int32_t c[kFramePixels][3];
  STOKER_UNROLL for (uint32_t k = 0; k < kFramePixels; ++k)
      channels_of<uint8_t, int32_t>(a, s.y[k], s.u[k], s.v[k], extra, c[k]);
  uint32_t words[3];
  if (a.is_planar()) {
    STOKER_UNROLL for (int i = 0; i < 3; ++i) words[i] = gpu::saturated_four(c[0][i], c[1][i], c[2][i], c[3][i]);
  } else {
    words[0] = gpu::saturated_four(c[0][0], c[0][1], c[0][2], c[1][0]);
    words[1] = gpu::saturated_four(c[1][1], c[1][2], c[2][0], c[2][1]);
    words[2] = gpu::saturated_four(c[2][2], c[3][0], c[3][1], c[3][2]);
  }
  const uint64_t first = out + (a.is_planar() ? 1 : 3) * uint64_t{at}, step = a.is_planar() ? pixels : 4;
  if (count == kFramePixels && ((first | step) & 3) == 0) {
    STOKER_UNROLL for (uint32_t i = 0; i < 3; ++i) * reinterpret_cast<uint32_t*>(first + i * step) = words[i];
    return;
  }
  const uint32_t bytes = a.is_planar() ? count : 3 * count;  // of a plane, or of all
  STOKER_UNROLL for (uint32_t i = 0; i < 3; ++i) {
    STOKER_UNROLL for (uint32_t k = 0; k < 4; ++k) {
      if ((a.is_planar() ? k : 4 * i + k) < bytes)
        *reinterpret_cast<uint8_t*>(first + i * step + k) = static_cast<uint8_t>(words[i] >> 8 * k & 255u);
    }
  }
}

STOKER_DEVICE void write_words(const FrameArguments& a, uint64_t out, const FrameSamples& s, uint32_t at,
                               uint32_t count, int extra, uint64_t pixels) {
  const uint64_t distance = a.is_planar() ? pixels : 1;
  for (uint32_t k = 0; k < count; ++k) {
    int64_t c[3];
    channels_of<uint16_t, int64_t>(a, s.y[k], s.u[k], s.v[k], extra, c);
    uint16_t* const to = reinterpret_cast<uint16_t*>(out) + (a.is_planar() ? 1 : 3) * uint64_t{at + k};
    STOKER_UNROLL for (int i = 0; i < 3; ++i) to[static_cast<uint64_t>(i) * distance] =
        static_cast<uint16_t>(c[i] < 0       ? 0
                              : c[i] > 65535 ? 65535
                                             : c[i]);
  }
}

STOKER_DEVICE void convert_frames(const FrameArguments& a, uint32_t block, uint32_t threads, uint32_t thread) {
  const auto width = static_cast<uint32_t>(a.low(a.size)), height = static_cast<uint32_t>(a.high(a.size));
  const bool is_turned = (a.kind & 1) != 0;
  const uint32_t columns = is_turned ? height : width, rows = is_turned ? width : height;
  const uint32_t groups = (columns + kFramePixels - 1) / kFramePixels, blocks = (groups * rows + threads - 1) / threads;
  const uint32_t picture = block >= blocks ? 1 : 0;
  const uint32_t group = (block - picture * blocks) * threads + thread;
  if (group >= groups * rows) return;
  const uint32_t i = group / groups, j = (group - i * groups) * kFramePixels, left = columns - j;
  const uint32_t count = left < kFramePixels ? left : kFramePixels;
  const int extra = static_cast<int>(a.kind >> 16 & 255) - 8;
  const uint64_t surface = picture ? a.surface[1] : a.surface[0], out = picture ? a.out[1] : a.out[0];
  FrameSamples s;
  load_pixels(s, a, surface, static_cast<int32_t>(i), static_cast<int32_t>(j), count);
  const bool has_words = (a.kind >> 24 & 1) != 0;
  const uint64_t pixels = uint64_t{width} * height;
  if (has_words) write_words(a, out, s, i * columns + j, count, extra, pixels);
  else write_bytes(a, out, s, i * columns + j, count, extra, pixels);
}

}  // namespace stoker::video

namespace stoker {

// Without a second picture there are blocks for the first one only.
STOKER_KERNEL stoker_video_frame(uint64_t first, uint64_t second, uint64_t to_first, uint64_t to_second,
                                 uint64_t chroma, uint64_t size, uint64_t corner, uint64_t kind, uint64_t weights0,
                                 uint64_t weights1, uint64_t weights2, uint64_t weights3) {
  const video::FrameArguments a{
      {first, second}, {to_first, to_second}, chroma, size, corner, kind, {weights0, weights1, weights2, weights3}};
  video::convert_frames(a, gpu::block_index(), gpu::thread_count(), gpu::thread_index());
}

}  // namespace stoker
