// SPDX-License-Identifier: Apache-2.0
// Destinations of resampled pixels.
#pragma once
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Pack two pixels from two reds, two greens and two blues.
inline PixelPair pair_of(uint32_t red, uint32_t green, uint32_t blue) {
  const uint32_t both = gpu::choose_bytes(red, green, 0x5140);
  return {gpu::choose_bytes(both, blue, 0x6410), gpu::choose_bytes(both, blue, 0x6532)};
}

// Destination of pairs of horizontal neighbours: an image with four bytes per pixel, or the stage's output if the stage
// does nothing else.
class PairStore {
 public:
  PairStore(const ResampleScratch& scratch, const Port& output, int32_t width) {
    if (!scratch.direct) {
      pixel_ = 4;
      row_ = 4 * ((int64_t{width} + 1) & ~int64_t{1});
      to_ = reinterpret_cast<uint8_t*>(scratch.between);
      form_ = Form::Words;
      return;
    }
    pixel_ = output.stride[0];
    row_ = output.stride[1];
    channel_ = output.channel;
    to_ = reinterpret_cast<uint8_t*>(output.data);
    const bool even = ((reinterpret_cast<uintptr_t>(to_) | static_cast<uint64_t>(row_)) & 1) == 0;
    form_ = pixel_ == 3 && channel_ == 1 && even ? Form::Packed : Form::Any;
  }
  uint8_t* at(int64_t y, int64_t x) const { return to_ + y * row_ + x * pixel_; }
  int64_t row() const { return row_; }
  int64_t pixel() const { return pixel_; }

  // Store red, green and blue of two pixels, the second of which may not exist.
  void put(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool second) const {
    const PixelPair pair = pair_of(red, green, blue);
    if (form_ == Form::Words) {
      *reinterpret_cast<PixelPair*>(to) = pair;
    } else if (form_ == Form::Packed && second) {
      auto* halves = reinterpret_cast<uint16_t*>(to);
      halves[0] = static_cast<uint16_t>(pair.first);
      halves[1] = static_cast<uint16_t>(gpu::choose_bytes(pair.first, pair.second, 0x4442));
      halves[2] = static_cast<uint16_t>(pair.second >> 8);
    } else {
      put_pixel(to, pair.first);
      if (second) put_pixel(to + pixel_, pair.second);
    }
  }
  // The same for two pixels the second of which is below the first.
  void put_below(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool second) const {
    const PixelPair pair = pair_of(red, green, blue);
    if (form_ == Form::Words) {
      *reinterpret_cast<uint32_t*>(to) = pair.first;
      if (second) *reinterpret_cast<uint32_t*>(to + row_) = pair.second;
    } else {
      put_pixel(to, pair.first);
      if (second) put_pixel(to + row_, pair.second);
    }
  }

 private:
  enum class Form : uint8_t { Words, Packed, Any };
  void put_pixel(uint8_t* to, uint32_t pixel) const {
#pragma unroll
    for (int c = 0; c < 3; ++c) to[c * channel_] = static_cast<uint8_t>(pixel >> (8 * c));
  }

  Form form_;
  int64_t pixel_, row_, channel_ = 1;
  uint8_t* to_;
};

// The same if the destination is known to be an image with four bytes per pixel.
class WordStore {
 public:
  WordStore(const ResampleScratch& scratch, int32_t width)
      : row_(4 * ((width + 1) & ~1)), to_(reinterpret_cast<uint8_t*>(scratch.between)) {}
  uint8_t* at(int64_t y, int32_t x) const { return to_ + y * row_ + 4 * x; }
  int32_t row() const { return row_; }
  int32_t pixel() const { return 4; }
  void put(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool) const {
    *reinterpret_cast<PixelPair*>(to) = pair_of(red, green, blue);
  }
  void put_below(uint8_t* to, uint32_t red, uint32_t green, uint32_t blue, bool second) const {
    const PixelPair pair = pair_of(red, green, blue);
    *reinterpret_cast<uint32_t*>(to) = pair.first;
    if (second) *reinterpret_cast<uint32_t*>(to + row_) = pair.second;
  }

 private:
  const int32_t row_;
  uint8_t* const to_;
};

}  // namespace stoker::stage
