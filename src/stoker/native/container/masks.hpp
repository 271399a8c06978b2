// SPDX-License-Identifier: Apache-2.0
// Segmentation masks of COCO's form: polygons and run lengths, painted into an image.
#pragma once
#include <cstdint>

#include "base/scratch.hpp"

namespace stoker {

// Image that is painted, row by row.
template <class T>
struct Canvas {
  T* pixels;
  int64_t height, width;
};
using LabelImage = Canvas<int32_t>;

constexpr float kMaxCoordinate = 1 << 20;
constexpr int64_t kMostCrossings = 1 << 21;

// Paint a polygon with `count` corners, x and y each. The pixels are those of pycocotools: corners are rounded to fifths
// of a pixel, edges run along this grid, and a pixel belongs to the polygon by the parity of crossings above its centre
// in its column. Return false, and paint nothing, if a coordinate is not a number or beyond kMaxCoordinate. T is int32_t
// or uint8_t. Crossings of edges with columns take 8 bytes each of `work`. If there may be more than `most_crossings`, the
// image is painted part by part: the memory is bounded by `most_crossings`, or by the bytes of the corners.
template <class T>
bool paint_polygon(const float* corners, int64_t count, T label, const Canvas<T>& image, Scratch& work,
                   int64_t most_crossings = kMostCrossings);

// Paint run lengths: pixels outside, then inside of the mask, in turn, column by column. Return false, and paint
// nothing, if a length is negative or their sum exceeds the image.
bool paint_runs(const int32_t* runs, int64_t count, int32_t label, const LabelImage& image);

// Paint parts one after the other: label, kind (0: a polygon, 1: run lengths), number of words, and the words, which are
// bits of float32 for polygons. Return false if the words are no such list.
bool paint_parts(const int32_t* words, int64_t count, const LabelImage& image, Scratch& work);

}  // namespace stoker
