// SPDX-License-Identifier: Apache-2.0
// Pixels of a picture that a GPU's video engines have decoded: luma, and pairs of chroma samples for 2 x 2 pixels. The
// arithmetic is that of video/convert.cpp, of which this is the form for a GPU.
//
// Samples of more than eight bits are in the upper bits of words. A thread computes a pixel of the turned image.
#pragma once
#include "shared/device.cuh"

namespace stoker::video {

constexpr int kFrameFractionBits = 13;  // kFractionBits of video/convert.hpp

struct FrameArguments {
  uint64_t luma, chroma, pitch, size, corner, kind, out, weights[4];

  STOKER_DEVICE static int32_t low(uint64_t packed) { return static_cast<int32_t>(packed & 0xFFFFFFFFu); }
  STOKER_DEVICE static int32_t high(uint64_t packed) { return static_cast<int32_t>(packed >> 32); }
};

template <class Sample>
STOKER_DEVICE int64_t sample_at(uint64_t address, int64_t index, int unused_bits) {
  return reinterpret_cast<const Sample*>(address)[index] >> unused_bits;
}

STOKER_DEVICE int64_t within(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

// Write a pixel. The channels of an image follow each other, or its planes (bit 25 of `kind`), `pixels` apart.
template <class Pixel>
STOKER_DEVICE void write_pixel(const FrameArguments& a, int64_t at, int64_t y, int64_t u, int64_t v, int extra,
                               int64_t pixels) {
  constexpr bool kWords = sizeof(Pixel) == 2;
  constexpr int64_t kMost = kWords ? 65535 : 255;
  const int order = static_cast<int>(a.kind >> 8 & 255);
  const bool planar = (a.kind >> 25 & 1) != 0;
  const int64_t distance = planar ? pixels : 1;
  Pixel* const to = reinterpret_cast<Pixel*>(a.out) + (planar ? at : 3 * at);
  int64_t c[3];
  if (order == 2) {  // as stored
    const int64_t half = kWords ? 0 : (int64_t{1} << extra) >> 1;
    c[0] = y, c[1] = u, c[2] = v;
    STOKER_UNROLL for (int i = 0; i < 3; ++i) {
      const int64_t value = kWords ? c[i] << (8 - extra) : (c[i] + half) >> extra;
      to[i * distance] = static_cast<Pixel>(within(value, kMost));
    }
    return;
  }
  const int shift = kFrameFractionBits + extra;
  const int64_t du = u - a.low(a.weights[3]), dv = v - a.low(a.weights[3]);
  const int64_t base =
      static_cast<int64_t>(a.low(a.weights[0])) * (y - a.high(a.weights[2])) + (int64_t{1} << (shift - 1));
  c[0] = base + a.high(a.weights[0]) * dv;
  c[1] = base + a.low(a.weights[1]) * du + a.high(a.weights[1]) * dv;
  c[2] = base + a.low(a.weights[2]) * du;
  STOKER_UNROLL for (int i = 0; i < 3; ++i) to[(order == 1 ? 2 - i : i) * distance] =
      static_cast<Pixel>(within(c[i] >> shift, kMost));
}

STOKER_DEVICE void convert_frame(const FrameArguments& a, uint64_t at) {
  const int64_t width = a.low(a.size), height = a.high(a.size);
  if (at >= static_cast<uint64_t>(width * height)) return;
  const int turns = static_cast<int>(a.kind & 3), bits = static_cast<int>(a.kind >> 16 & 255);
  const int64_t columns = turns & 1 ? height : width, i = static_cast<int64_t>(at) / columns,
                j = static_cast<int64_t>(at) % columns;
  const int64_t row = turns == 0 ? i : turns == 1 ? j : turns == 2 ? height - 1 - i : height - 1 - j;
  const int64_t column = turns == 0 ? j : turns == 1 ? width - 1 - i : turns == 2 ? width - 1 - j : i;
  const int64_t y = row + a.high(a.corner), x = column + a.low(a.corner), pitch = static_cast<int64_t>(a.pitch);
  const uint64_t luma = a.luma + static_cast<uint64_t>(y * pitch),
                 chroma = a.chroma + static_cast<uint64_t>((y >> 1) * pitch);
  const int64_t pair = (x >> 1) * 2;
  int64_t samples[3];
  if (bits > 8) {
    samples[0] = sample_at<uint16_t>(luma, x, 16 - bits);
    samples[1] = sample_at<uint16_t>(chroma, pair, 16 - bits);
    samples[2] = sample_at<uint16_t>(chroma, pair + 1, 16 - bits);
  } else {
    samples[0] = sample_at<uint8_t>(luma, x, 0);
    samples[1] = sample_at<uint8_t>(chroma, pair, 0);
    samples[2] = sample_at<uint8_t>(chroma, pair + 1, 0);
  }
  const bool words = (a.kind >> 24 & 1) != 0;
  const auto place = static_cast<int64_t>(at);
  const int64_t pixels = width * height;
  if (words) write_pixel<uint16_t>(a, place, samples[0], samples[1], samples[2], bits - 8, pixels);
  else write_pixel<uint8_t>(a, place, samples[0], samples[1], samples[2], bits - 8, pixels);
}

}  // namespace stoker::video

namespace stoker {

STOKER_KERNEL stoker_video_frame(uint64_t luma, uint64_t chroma, uint64_t pitch, uint64_t size, uint64_t corner,
                                 uint64_t kind, uint64_t out, uint64_t weights0, uint64_t weights1, uint64_t weights2,
                                 uint64_t weights3) {
  const video::FrameArguments a{luma, chroma, pitch, size, corner, kind, out, {weights0, weights1, weights2, weights3}};
  video::convert_frame(a, uint64_t{gpu::block_index()} * gpu::thread_count() + gpu::thread_index());
}

}  // namespace stoker
