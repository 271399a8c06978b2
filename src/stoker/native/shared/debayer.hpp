// SPDX-License-Identifier: Apache-2.0
// Colours from a mosaic of one colour per pixel, as OpenCV's `demosaicing`. Plain C++ that compiles for the CPU and for a
// GPU.
#pragma once
#include <cstdint>

#include "shared/fused.hpp"

namespace stoker::debayer {

enum class Algorithm : int { Bilinear = 0, EdgeAware, Gray, Gradients };

constexpr int64_t kLeast = 3;           // pixels of a side
constexpr int64_t kLeastGradients = 8;  // of a side, else Gradients computes the values of Bilinear

// Rows with red pixels have the parity `red_row`, and these pixels the column parity `red_column`. The blue position is
// that in a tile of two pixels that begins in row 1 and column 1, which is opposite to the red one.
struct Mosaic {
  int64_t red_row, red_column;
};
inline Mosaic mosaic_of(int64_t blue_row, int64_t blue_column) { return {blue_row & 1, blue_column & 1}; }

template <class T>
struct Color {
  T line, green, other;  // `line`: the colour of the pixel's row that is not green
};

// Sums are of Sum, which has twice the bits of T or more. `colored`: the pixel is not green.
template <bool kEdgeAware, class T, class Sum>
STOKER_INLINED inline Color<T> color_at(Sum own, Sum left, Sum right, Sum up, Sum down, Sum corners, bool colored) {
  const Sum across = (left + right + 1) >> 1, along = (up + down + 1) >> 1;
  Sum green = (left + right + up + down + 2) >> 2;
  if constexpr (kEdgeAware) {
    const Sum horizontal = left > right ? left - right : right - left, vertical = up > down ? up - down : down - up;
    green = horizontal > vertical ? along : across;
  }
  return {static_cast<T>(colored ? own : across), static_cast<T>(colored ? green : own),
          static_cast<T>(colored ? (corners + 2) >> 2 : along)};
}

// OpenCV's weights of red, green and blue, which sum to 2^14.
constexpr uint32_t kRed = 4899, kGreen = 9617, kBlue = 1868;

// Gray value; `line` and `other` are the weights of the row's colour and of the third one.
STOKER_INLINED inline uint32_t gray_at(uint32_t own, uint32_t left, uint32_t right, uint32_t up, uint32_t down,
                                       uint32_t corners, uint32_t line, uint32_t other, bool colored) {
  const uint32_t sides = left + right, above = up + down;
  const uint32_t at_color = own * line * 4 + (sides + above) * kGreen + corners * other;
  const uint32_t at_green = own * kGreen * 4 + 2 * (sides * line + above * other);
  return ((colored ? at_color : at_green) + (1u << 15)) >> 16;
}

// The rest is the variable number of gradients of Chang, Cheung and Pang ("Color filter array recovery using a
// threshold-based variable number of gradients", 1999), with the integers and rounding of OpenCV 5. The mosaic is
// mirrored about its edge pixels.

namespace pixels {
using Lane = int32_t;
using Value = int32_t;
STOKER_INLINED inline Value is_less(Value a, Value b) { return a < b ? -1 : 0; }
#include "shared/gradients.ipp"
}  // namespace pixels

// OpenCV computes groups of eight columns of a row with 1/14 rounded to float32 as the weight of seven directions, and
// the remaining pixels with a decimal fraction. The groups begin at the first pixel of the row that is not green.
STOKER_INLINED inline bool is_grouped(int64_t x, int64_t width, int64_t first) {
  return x >= first && x < first + (width - first) / 8 * 8;
}

constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction, and is rounded to even

STOKER_INLINED inline uint8_t shifted(int32_t own, int32_t difference, float weight) {
  const float step = static_cast<float>(difference) * weight;
  const int32_t value = own + static_cast<int32_t>((step + kRound) - kRound);
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

template <bool kColored>
STOKER_INLINED inline Color<uint8_t> gradient_color_at(const pixels::Window& w, bool grouped) {
  const pixels::GradientSums sums = pixels::gradient_sums<kColored>(w);
  // Without a direction the sums are 0: all gradients are 1.
  const float exact = 1.0f / static_cast<float>(2 * pixels::greater(sums.count, 1));
  const float weight = sums.count == 7 && !grouped ? 0.0714286f : exact;
  const int32_t own = w.at(0, 0);
  const uint8_t first = shifted(own, sums.first - sums.own, weight),
                second = shifted(own, sums.second - sums.own, weight);
  const auto same = static_cast<uint8_t>(own);
  if constexpr (kColored) return {same, first, second};
  else return {first, same, second};
}

}  // namespace stoker::debayer
