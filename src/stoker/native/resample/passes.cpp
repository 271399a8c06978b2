// SPDX-License-Identifier: Apache-2.0
// Decisions of a resampling before any pixel is read: its passes and their order.
#include <algorithm>

#include "resample/kernels.hpp"
#include "resample/resample.hpp"
#include "resample/weights.hpp"

namespace stoker::resample {

namespace {

// Return whether the sizes of all intermediate results can be computed without overflow.
bool addressable(const Window& v, const Window& h, const View& src) {
  const double pixel = static_cast<double>(src.shape[2]) * static_cast<double>(size_of(src.dtype));
  const double columns = static_cast<double>(std::max(h.out, h.in) + h.max_taps + kOverrun);
  const double rows = static_cast<double>(v.max_taps + 8 * kRows);
  return pixel * columns * rows < 0x1p50;
}

}  // namespace

bool make_passes(const View& src, const Axis& vertical, const Axis& horizontal, Order order, Passes& p) {
  if (src.rank != 3 || src.shape[0] != vertical.in_size || src.shape[1] != horizontal.in_size) return false;
  Window &v = p.vertical, &h = p.horizontal;
  if (!make_window(vertical, v) || !make_window(horizontal, h)) return false;
  p.empty = v.out == 0 || h.out == 0 || v.in == 0 || h.in == 0 || src.shape[2] <= 0;
  p.vertical_first = false;
  if (p.empty) return true;
  if (!addressable(v, h, src)) return false;
  const bool is_float = src.dtype == DType::F32;
  // A pass that only moves pixels is replaced by a selection. For float Pillow must skip the pass, too: its Lanczos
  // weights of shifts by whole pixels are 1e-17 and not zero, which changes a float sum.
  const bool crop = v.integral && h.integral;
  for (Window* w : {&v, &h})
    if (crop || (is_float ? w->whole : w->integral)) {
      w->filter = Filter::Nearest;
      w->max_taps = 1;
    }
  p.vertical_first = order == Order::Pillow && v.filter != Filter::Nearest && h.filter != Filter::Nearest &&
                     v.in > v.out && v.in - v.out > 2 * (h.in - h.out);
  switch (src.dtype) {
    case DType::U8:
    case DType::U16:
    case DType::I16:
    case DType::I32:
    case DType::F32: return true;
    default: return false;
  }
}

}  // namespace stoker::resample
