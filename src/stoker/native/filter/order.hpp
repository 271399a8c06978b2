// SPDX-License-Identifier: Apache-2.0
// Order statistics over rectangular windows of an image: minimum, maximum, median.
//
// Elements are compared as integers whose order is that of the numbers. NaNs are beyond the infinity of their sign, and
// -0 is below 0, so that the results do not depend on the order of the comparisons.
#pragma once
#include "base/tensor.hpp"
#include "shared/border.hpp"

namespace stoker::order {

// A window of `height` x `width` pixels that begins `top` rows above and `left` pixels before the output position.
struct Window {
  int64_t height, width;
  int64_t top, left;
  Border border;
};

// dst[y,x] = the largest (or smallest) of src[y - top + i, x - left + j]. Pixels of a constant border do not take part.
// src and dst: [H,W,C] with any strides, of one type of at most 32 bits and one shape. They must not overlap.
//
// Return false, with dst untouched, for other types or shapes, and windows that do not contain their position.
bool extreme(const View& src, const Window& window, bool largest, const View& dst, Scratch& scratch);

// dst[y,x] = the median of a window with the position in its centre. Edges are repeated. Types and shapes as above.
//
// Return false, with dst untouched, also for windows of even extents or of 2^31 pixels or more.
bool median(const View& src, int64_t height, int64_t width, const View& dst, Scratch& scratch);

// Loops over rows of keys of one size. Inputs may be read up to kSlack bytes beyond their end.
constexpr int64_t kSlack = 64;
constexpr int kSorted = 5;  // maximum number of rows that are sorted by column

// Histogram of bytes: counts of the 256 bytes, and their sums over 16 neighbours.
struct Histogram {
  uint16_t fine[256], coarse[16];
};
// Medians of a row of bytes, from the histograms of columns of a plane: output i, of n, is `step` bytes after the one
// before it and has the columns from i on, `width` of them. Windows have at most kMostCounted pixels.
using CountedMedian = void (*)(uint8_t* out, const Histogram* columns, int64_t height, int64_t width, int64_t step,
                               int64_t n);
constexpr int64_t kMostCounted = 65535;

template <class T>
struct Loops {
  // Of the functions of two forms, the first yields minima and the second maxima.
  using Pair = void (*)(T* out, const T* a, const T* b, int64_t n);
  using Triple = void (*)(T* out, const T* a, const T* b, const T* c, int64_t n);
  using Fold = void (*)(T* out, T* sum, const T* a, const T* b, int64_t n);  // sum = best(sum, a); out = best(sum, b)
  Pair pair[2];
  Triple triple[2];
  Fold fold[2];
  // Sort the elements of each column of three or five rows.
  void (*sort3)(T* const* out, const T* const* rows, int64_t n);
  void (*sort5)(T* const* out, const T* const* rows, int64_t n);
  // Medians of windows whose columns are sorted. A pixel has `step` elements.
  void (*median3)(T* out, const T* const* sorted, int64_t step, int64_t n);
  // The same for three rows, whose columns are not sorted. Return false if pixels have another size than the loop takes.
  // Optional.
  bool (*median3_of_rows)(T* out, const T* const* rows, int64_t step, int64_t n) = nullptr;
  void (*median5)(T* out, const T* const* sorted, int64_t step, int64_t n);
  // Median of any window.
  void (*window)(T* out, const T* const* rows, int64_t height, int64_t width, int64_t step, int64_t n);
};

struct Kernels {
  Loops<uint8_t> bytes;
  Loops<uint16_t> words;
  Loops<uint32_t> longs;
  CountedMedian counted;
};

void fill_plain(Kernels& k);
#if defined(__x86_64__)
void fill_avx2(Kernels& k);
void fill_avx512(Kernels& k);
#endif

}  // namespace stoker::order
