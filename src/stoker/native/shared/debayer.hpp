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

// A pixel and its neighbours up to two rows and columns away.
struct Window {
  int32_t values[5][5];
  STOKER_INLINED int32_t at(int y, int x) const { return values[y + 2][x + 2]; }
  STOKER_INLINED int32_t apart(int y0, int x0, int y1, int x1) const {
    const int32_t difference = at(y0, x0) - at(y1, x1);
    return difference < 0 ? -difference : difference;
  }
};

// Sums over the chosen directions of twice the mean colours there. `own`: the pixel's colour; `first` and `second`: green
// and the third colour, or the row's colour and the column's one if the pixel is green.
struct GradientSums {
  int32_t own = 0, first = 0, second = 0, count = 0;
};

// One of eight directions.
template <int kY, int kX>
struct Toward {
  static constexpr bool kDiagonal = kY != 0 && kX != 0;

  // Twice the paper's gradient.
  template <bool kColored>
  STOKER_INLINED static int32_t gradient(const Window& w) {
    const int32_t both = w.apart(kY, kX, -kY, -kX) + w.apart(2 * kY, 2 * kX, 0, 0);
    if constexpr (!kDiagonal) {
      // The lines on both sides. (kX, kY) is one step to the side.
      return 2 * both + w.apart(kY + kX, kX + kY, kX - kY, kY - kX) + w.apart(kY - kX, kX - kY, -kY - kX, -kX - kY) +
             w.apart(2 * kY + kX, 2 * kX + kY, kX, kY) + w.apart(2 * kY - kX, 2 * kX - kY, -kX, -kY);
    } else if constexpr (kColored) {
      return 2 * both + w.apart(kY, 0, 0, -kX) + w.apart(0, kX, -kY, 0) + w.apart(2 * kY, kX, kY, 0) +
             w.apart(kY, 2 * kX, 0, kX);
    } else {
      return 2 * (both + w.apart(2 * kY, kX, 0, -kX) + w.apart(kY, 2 * kX, -kY, 0));
    }
  }

  template <bool kColored>
  STOKER_INLINED static void add(const Window& w, bool chosen, GradientSums& sums) {
    if (!chosen) return;
    ++sums.count;
    if constexpr (kDiagonal && !kColored) {
      sums.own += 2 * w.at(kY, kX);
      sums.first += w.at(2 * kY, kX) + w.at(0, kX);
      sums.second += w.at(kY, 2 * kX) + w.at(kY, 0);
    } else if constexpr (kDiagonal) {
      sums.own += w.at(2 * kY, 2 * kX) + w.at(0, 0);
      sums.first += (w.at(2 * kY, kX) + w.at(kY, 0) + w.at(0, kX) + w.at(kY, 2 * kX)) >> 1;
      sums.second += 2 * w.at(kY, kX);
    } else {
      sums.own += w.at(2 * kY, 2 * kX) + w.at(0, 0);
      const int32_t ahead = 2 * w.at(kY, kX);
      if constexpr (kColored) {
        sums.first += ahead;
        sums.second += w.at(kY + kX, kX + kY) + w.at(kY - kX, kX - kY);
      } else {
        const int32_t aside = w.at(2 * kY + kX, 2 * kX + kY) + w.at(2 * kY - kX, 2 * kX - kY);
        sums.first += kY == 0 ? ahead : aside;
        sums.second += kY == 0 ? aside : ahead;
      }
    }
  }
};

// OpenCV computes groups of eight columns of a row with 1/14 rounded to float32 as the weight of seven directions, and
// the remaining pixels with a decimal fraction. The groups begin at the first pixel of the row that is not green.
STOKER_INLINED inline bool is_grouped(int64_t x, int64_t width, int64_t first) {
  return x >= first && x < first + (width - first) / 8 * 8;
}

STOKER_INLINED inline uint8_t shifted(int32_t own, int32_t difference, float weight) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum has no fraction, and is rounded to even
  const float step = static_cast<float>(difference) * weight;
  const int32_t value = own + static_cast<int32_t>((step + kRound) - kRound);
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

template <bool kColored>
STOKER_INLINED inline Color<uint8_t> gradient_color_at(const Window& w, bool grouped) {
  const int32_t north = Toward<-1, 0>::gradient<kColored>(w), south = Toward<1, 0>::gradient<kColored>(w),
                west = Toward<0, -1>::gradient<kColored>(w), east = Toward<0, 1>::gradient<kColored>(w),
                north_west = Toward<-1, -1>::gradient<kColored>(w), north_east = Toward<-1, 1>::gradient<kColored>(w),
                south_west = Toward<1, -1>::gradient<kColored>(w), south_east = Toward<1, 1>::gradient<kColored>(w);
  const auto least = [](int32_t a, int32_t b) { return a < b ? a : b; };
  const auto most = [](int32_t a, int32_t b) { return a > b ? a : b; };
  const int32_t low = least(least(least(north, south), least(west, east)),
                            least(least(north_west, north_east), least(south_west, south_east)));
  const int32_t high = most(most(most(north, south), most(west, east)),
                            most(most(north_west, north_east), most(south_west, south_east)));
  const int32_t threshold = most(low + high / 2, 1);
  GradientSums sums;
  Toward<-1, 0>::add<kColored>(w, north < threshold, sums);
  Toward<1, 0>::add<kColored>(w, south < threshold, sums);
  Toward<0, -1>::add<kColored>(w, west < threshold, sums);
  Toward<0, 1>::add<kColored>(w, east < threshold, sums);
  Toward<-1, -1>::add<kColored>(w, north_west < threshold, sums);
  Toward<-1, 1>::add<kColored>(w, north_east < threshold, sums);
  Toward<1, -1>::add<kColored>(w, south_west < threshold, sums);
  Toward<1, 1>::add<kColored>(w, south_east < threshold, sums);
  // Without a direction the sums are 0: all gradients are 1.
  const float exact = 1.0f / static_cast<float>(2 * most(sums.count, 1));
  const float weight = sums.count == 7 && !grouped ? 0.0714286f : exact;
  const int32_t own = w.at(0, 0);
  const uint8_t first = shifted(own, sums.first - sums.own, weight),
                second = shifted(own, sums.second - sums.own, weight);
  const auto same = static_cast<uint8_t>(own);
  if constexpr (kColored) return {same, first, second};
  else return {first, same, second};
}

}  // namespace stoker::debayer
