// SPDX-License-Identifier: Apache-2.0
#include "container/masks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace stoker {

namespace {

constexpr int64_t kFine = 5;  // steps of the grid per pixel

int64_t on_grid(float x) { return static_cast<int64_t>(static_cast<double>(kFine) * static_cast<double>(x) + 0.5); }
int64_t rounded(double x) { return static_cast<int64_t>(x + 0.5); }  // towards zero, as a conversion in C

// Row at which a crossing between two columns of the grid lies; `v` is the upper one of its points.
int64_t row_of(int64_t v, int64_t height) {
  const double y = (static_cast<double>(v) + 0.5) / static_cast<double>(kFine) - 0.5;
  return static_cast<int64_t>(std::ceil(std::clamp(y, 0.0, static_cast<double>(height))));
}

struct Columns {
  int64_t begin, end;
};

// Collect the crossings of one edge with the centres of columns: a column's centre lies between the grid's columns
// 5k + 2 and 5k + 3. A crossing is a position in the image, counted column by column.
template <class T>
int64_t* cross_edge(int64_t x0, int64_t y0, int64_t x1, int64_t y1, const Canvas<T>& image, Columns columns,
                    int64_t* to) {
  const int64_t dx = std::abs(x1 - x0), dy = std::abs(y1 - y0);
  if (dx >= dy ? x0 > x1 : y0 > y1) {
    std::swap(x0, x1);
    std::swap(y0, y1);
  }
  const auto cross = [&](int64_t column, int64_t v) { *to++ = column * image.height + row_of(v, image.height); };
  if (dx >= dy) {
    if (dx == 0) return to;
    const double slope = static_cast<double>(y1 - y0) / static_cast<double>(dx);
    const auto v_at = [&](int64_t x) { return rounded(static_cast<double>(y0) + slope * static_cast<double>(x - x0)); };
    // The columns with x0 <= 5k + 2 and 5k + 3 <= x1.
    const int64_t first = x0 <= 2 ? 0 : (x0 - 2 + kFine - 1) / kFine;
    for (int64_t k = std::max(first, columns.begin); k < columns.end && kFine * k + 3 <= x1; ++k)
      cross(k, std::min(v_at(kFine * k + 2), v_at(kFine * k + 3)));
    return to;
  }
  const int64_t left = std::min(x0, x1), right = std::max(x0, x1);
  const double slope = static_cast<double>(x1 - x0) / static_cast<double>(dy);
  const bool rises = x1 > x0;
  const int64_t first = left <= 2 ? 0 : (left - 2 + kFine - 1) / kFine;
  for (int64_t k = std::max(first, columns.begin); k < columns.end && kFine * k + 3 <= right; ++k) {
    // The first step of the edge that is on the other side of the centre.
    const auto is_beyond = [&](int64_t t) {
      return (rounded(static_cast<double>(x0) + slope * static_cast<double>(t)) >= kFine * k + 3) == rises;
    };
    const double near = (static_cast<double>(kFine * k) + 2.5 - static_cast<double>(x0)) / slope;
    int64_t t = static_cast<int64_t>(std::clamp(near, 1.0, static_cast<double>(dy)));
    while (t > 1 && is_beyond(t - 1)) --t;
    while (t < dy && !is_beyond(t)) ++t;
    if (is_beyond(t) && !is_beyond(t - 1)) cross(k, y0 + t - 1);
  }
  return to;
}

// Paint positions `begin` to `end`, counted column by column.
template <class T>
void paint(int64_t begin, int64_t end, T label, const Canvas<T>& image) {
  for (int64_t at = begin; at < end;) {
    const int64_t x = at / image.height, stop = std::min(end, (x + 1) * image.height);
    T* pixel = image.pixels + (at - x * image.height) * image.width + x;
    for (; at < stop; ++at, pixel += image.width) *pixel = label;
  }
}

}  // namespace

template <class T>
bool paint_polygon(const float* corners, int64_t count, T label, const Canvas<T>& image, Scratch& work,
                   int64_t most_crossings) {
  // An edge crosses at most as many centres as its extent in pixels, and two.
  double most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float* const a = corners + 2 * i;
    const float* const b = corners + 2 * (i + 1 < count ? i + 1 : 0);
    if (!(std::abs(a[0]) <= kMaxCoordinate && std::abs(a[1]) <= kMaxCoordinate)) return false;
    most +=
        std::min(std::abs(static_cast<double>(a[0]) - static_cast<double>(b[0])), static_cast<double>(image.width)) + 3;
  }
  const int64_t pixels = image.height * image.width;
  if (pixels == 0 || count == 0) return true;
  // A closed polygon crosses each column an even number of times, so that columns can be painted part by part. An edge
  // crosses a column once at most.
  const bool fits = most < static_cast<double>(most_crossings);
  const int64_t step = fits ? image.width : std::clamp<int64_t>(most_crossings / count, 1, image.width);
  const int64_t capacity = fits ? static_cast<int64_t>(most) + 1 : step * count;
  auto* const crossings = reinterpret_cast<int64_t*>(work.get(8 * static_cast<size_t>(capacity)));
  for (int64_t begin = 0; begin < image.width; begin += step) {
    const Columns columns{begin, std::min(begin + step, image.width)};
    int64_t* end = crossings;
    for (int64_t i = 0; i < count; ++i) {
      const float* const a = corners + 2 * i;
      const float* const b = corners + 2 * (i + 1 < count ? i + 1 : 0);
      end = cross_edge(on_grid(a[0]), on_grid(a[1]), on_grid(b[0]), on_grid(b[1]), image, columns, end);
    }
    std::sort(crossings, end);
    for (int64_t* at = crossings; at < end; at += 2)
      paint(at[0], at + 1 < end ? at[1] : columns.end * image.height, label, image);
  }
  return true;
}

template bool paint_polygon(const float*, int64_t, int32_t, const Canvas<int32_t>&, Scratch&, int64_t);
template bool paint_polygon(const float*, int64_t, uint8_t, const Canvas<uint8_t>&, Scratch&, int64_t);

bool paint_runs(const int32_t* runs, int64_t count, int32_t label, const LabelImage& image) {
  const int64_t pixels = image.height * image.width;
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (runs[i] < 0 || runs[i] > pixels - sum) return false;
    sum += runs[i];
  }
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i % 2 == 1) paint(at, at + runs[i], label, image);
    at += runs[i];
  }
  return true;
}

bool paint_parts(const int32_t* words, int64_t count, const LabelImage& image, Scratch& work) {
  for (int64_t at = 0; at < count;) {
    if (count - at < 3) return false;
    const int32_t label = words[at], kind = words[at + 1], size = words[at + 2];
    at += 3;
    if (size < 0 || size > count - at || kind < 0 || kind > 1 || (kind == 0 && size % 2 != 0)) return false;
    const int32_t* const own = words + at;
    at += size;
    if (kind == 1) {
      if (!paint_runs(own, size, label, image)) return false;
    } else if (!paint_polygon(reinterpret_cast<const float*>(own), size / 2, label, image, work)) {
      return false;
    }
  }
  return true;
}

}  // namespace stoker
