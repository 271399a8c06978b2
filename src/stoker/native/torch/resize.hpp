// SPDX-License-Identifier: Apache-2.0
// Resizing of bytes as in torch on CPUs, bit for bit: interpolate(size, mode, antialias) of uint8 tensors.
#pragma once
#include <memory>
#include <vector>

#include "base/tensor.hpp"

namespace stoker::torch_resize {

enum class Filter : int { Bilinear = 0, Bicubic, Lanczos };

// Window of an image: columns [x0, x1), rows [y0, y1).
struct Region {
  int64_t x0, y0, x1, y1;
  bool operator==(const Region&) const = default;
};

// Receiver of finished rows [y0, y1) of the result; pixels are contiguous, rows are `pitch` bytes apart.
struct Sink {
  void (*take)(void* to, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch);
  void* to;
};

// A resize from one size to another, of which a window is wanted.
struct Sizes {
  int64_t height, width, channels;
  Filter filter;
  bool smooth;  // widens the filter when the image shrinks; otherwise (not for lanczos) it keeps its own size
  int64_t out_height, out_width;
  Region wanted;  // inside of the result
  bool operator==(const Sizes&) const = default;
};

// Weights of one resize, which all images of the same size share.
//
// Columns are filtered, then rows, with 16-bit weights whose precision follows from the largest weight; both passes
// round to bytes. Only the wanted window is computed, from the window of the source that it needs.
class Resize {
 public:
  explicit Resize(const Sizes& sizes);  // at least one pixel on each side
  ~Resize();
  bool is_for(const Sizes& sizes) const;  // with the current instruction set
  const Region& needed() const;           // window of the source

  // Pass the rows of the wanted window to the sink. src: the needed window, [H,W,C] of U8 with any strides. Return
  // false without a call of the sink if the window has another size or type.
  bool run(const View& src, const Sink& sink, Scratch& scratch) const;

  // A run whose source arrives a few rows at a time, while they are in the cache. The memory is that of `scratch`.
  class ByRows {
   public:
    ByRows(const Resize& resize, Scratch& scratch);
    int64_t rows_at_once() const;  // rows of each call of `take` but the last are a multiple of this
    int64_t reach() const;  // bytes that are read from each row's begin on; those after the pixels may have any value
    // Take rows of the needed window, contiguous pixels, in order.
    void take(const uint8_t* pixels, int64_t pitch, int64_t count);
    // Pass the result to the sink, once all rows have been taken.
    void finish(const Sink& sink) const;

   private:
    friend class Resize;
    ByRows(const Resize& resize, Scratch& scratch, int64_t line_bytes);

    const Resize& resize_;
    const uint8_t** each_;
    uint8_t *lines_, *middle_, *result_;
    int64_t pitch_, taken_ = 0;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The last few resizes of a thread.
class ResizeCache {
 public:
  const Resize& get(const Sizes& sizes);

 private:
  std::vector<std::unique_ptr<Resize>> latest_;  // the most recent one is first
};

// Resize a whole image. src and dst: [H,W,C] of U8; src with any strides, dst with contiguous channels. They must not
// overlap. Return false, with dst untouched, for other types or an image without pixels.
bool resize(const View& src, Filter filter, bool smooth, const View& dst, ResizeCache& cache, Scratch& scratch);

// Resize with mode "nearest" or "nearest-exact". Pixels may have any size.
bool pick(const View& src, bool exact, const View& dst, Scratch& scratch);

}  // namespace stoker::torch_resize
