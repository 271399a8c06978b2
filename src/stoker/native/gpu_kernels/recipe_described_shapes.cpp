// SPDX-License-Identifier: Apache-2.0
// Description of a row's views, sizes and warps.
#include <algorithm>
#include <cmath>

#include "gpu_kernels/recipe_description.hpp"
#include "resample/resample.hpp"
#include "shared/warp_point.hpp"
#include "torch/resize_float_taps.hpp"
#include "torch/resize_taps.hpp"

namespace stoker::recipe::gpu {

namespace {

constexpr int kTransposes = 7;

}  // namespace

void Description::crop(Image v, const double* p) {
  const int64_t x0 = whole(p[0]), y0 = whole(p[1]), x1 = whole(p[2]), y1 = whole(p[3]);
  if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > v.map.width || y1 > v.map.height)
    throw InvalidRecipe{"a crop that leaves the image"};
  moved(v, y0 * v.map.row + x0 * v.map.pixel);
  v.map.height = y1 - y0;
  v.map.width = x1 - x0;
  images_.push_back(v);
}

void Description::transpose(Image v, const double* p) {
  const int64_t kind = whole(p[0]);
  if (kind < 0 || kind >= kTransposes) throw InvalidRecipe{"an unknown transposition"};
  // Pillow's transpositions: mirror rows, mirror columns, then exchange both axes.
  static constexpr bool kFlipX[] = {true, false, true, true, false, false, true};
  static constexpr bool kFlipY[] = {false, true, false, true, true, false, true};
  if (kFlipX[kind]) {
    moved(v, (v.map.width - 1) * v.map.pixel);
    v.map.pixel = -v.map.pixel;
  }
  if (kFlipY[kind]) {
    moved(v, (v.map.height - 1) * v.map.row);
    v.map.row = -v.map.row;
  }
  if (kind == 2 || kind > 3) {
    std::swap(v.map.height, v.map.width);
    std::swap(v.map.row, v.map.pixel);
  }
  images_.push_back(v);
}

void Description::spread(Image v) {
  if (v.map.channels != 1) throw InvalidRecipe{"other than one channel to spread"};
  v.map.channels = 3;
  v.map.channel = 0;
  images_.push_back(v);
}

// ---- sizes ----

void Description::resizing(Op op, const Image& from, const double* p) {
  Step& s = step(from);
  const int64_t height = side(p[0]), width = side(p[1]);
  if (op == Op::Resize) {
    resize(s, height, width, p);
  } else if (op == Op::TorchPick) {
    s.kind = p[2] != 0;
  } else if (op == Op::TorchResizeFloats) {
    torch_resize_floats(s, height, width, p);
  } else {
    torch_resize(s, height, width, p);
  }
  make(s, height, width, s.in.channels);
}

void Description::resize(Step& s, int64_t height, int64_t width, const double* p) {
  const int64_t filter = whole(p[6]);
  if (filter < 0 || filter > static_cast<int64_t>(resample::Filter::Hamming)) throw InvalidRecipe{"an unknown filter"};
  const auto f = static_cast<resample::Filter>(filter);
  View v;
  v.rank = 3;
  v.shape[0] = s.in.height;
  v.shape[1] = s.in.width;
  v.shape[2] = s.in.channels;
  v.set_contiguous_strides();
  const resample::Axis vertical{s.in.height, height, p[2], p[3], f, true},
      horizontal{s.in.width, width, p[4], p[5], f, true};
  const auto order = p[7] != 0 ? resample::Order::HorizontalFirst : resample::Order::Pillow;
  resample::Passes passes;
  if (!resample::make_passes(v, vertical, horizontal, order, passes) || passes.empty)
    throw InvalidRecipe{"a region that is not finite"};
  Axes& axes = *sent<Axes>(1, &s.extra);
  axes.vertical = passes.vertical;
  axes.horizontal = passes.horizontal;
  axes.vertical_first = passes.vertical_first;
  const auto weights = [](const resample::Window& w) { return w.out * w.max_taps * int64_t{sizeof(int32_t)}; };
  work_in(s, 0, height * int64_t{sizeof(resample::Taps)});
  work_in(s, 1, width * int64_t{sizeof(resample::Taps)});
  work_in(s, 2, weights(passes.vertical));
  work_in(s, 3, weights(passes.horizontal));
  const int64_t between = passes.vertical_first ? height * s.in.width : s.in.height * width;
  work_in(s, 4, between * s.in.channels);
}

void Description::torch_resize(Step& s, int64_t height, int64_t width, const double* p) {
  const bool smooth = p[3] != 0;
  const torch_resize::Filter filter = filter_of(p[2], smooth);
  PairAxes& axes = *sent<PairAxes>(1, &s.extra);
  const auto describe = [&](PairAxis& axis, int64_t in, int64_t out) {
    if (in == out) return;
    const torch_resize::Taps taps(filter, smooth, in, out);
    std::copy(taps.start.begin(), taps.start.end(), sent<int32_t>(taps.start.size(), &axis.start));
    std::copy(taps.pairs.begin(), taps.pairs.end(), sent<int32_t>(taps.pairs.size(), &axis.pairs));
    axis.most = taps.most;
    axis.precision = taps.precision;
  };
  describe(axes.horizontal, s.in.width, width);
  describe(axes.vertical, s.in.height, height);
  work_in(s, 0, s.in.height * width * s.in.channels);
}

void Description::torch_resize_floats(Step& s, int64_t height, int64_t width, const double* p) {
  const torch_resize::Way way = way_of(p[2], p[3]);
  FloatAxes& axes = *sent<FloatAxes>(1, &s.extra);
  axes.way = way;
  const auto describe = [&](FloatAxis& axis, int64_t in, int64_t out) {
    const torch_resize::FloatTaps taps(static_cast<torch_resize::Filter>(p[2]), way, in, out);
    std::copy(taps.index.begin(), taps.index.end(), sent<int32_t>(taps.index.size(), &axis.index));
    std::copy(taps.count.begin(), taps.count.end(), sent<int32_t>(taps.count.size(), &axis.count));
    std::copy(taps.weights.begin(), taps.weights.end(), sent<float>(taps.weights.size(), &axis.weights));
    axis.max_taps = taps.max_taps;
  };
  describe(axes.horizontal, s.in.width, width);
  describe(axes.vertical, s.in.height, height);
  if (way == torch_resize::Way::Smooth)
    work_in(s, 0, s.in.height * width * s.in.channels * static_cast<int64_t>(sizeof(float)));
}

// ---- warps ----

void Description::warp(Op op, const Image& from, const double* p) {
  Step& s = step(from);
  const int64_t height = side(p[0]), width = side(p[1]);
  switch (op) {
    case Op::Affine: affine(s, height, width, p); break;
    case Op::Project: project(s, p); break;
    case Op::TorchGrid: torch_grid(s, height, width, p); break;
    default:
      s.kind = (p[11] != 0 ? 1 : 0) | (p[10] != 0 ? 2 : 0);
      std::copy_n(p + 2, 8, s.number);
      std::copy_n(p + 12, 4, s.number + 8);
  }
  make(s, height, width, s.in.channels);
}

void Description::finite(const double* m, int count) {
  for (int i = 0; i < count; ++i)
    if (!std::isfinite(m[i])) throw InvalidRecipe{"a matrix that is not finite"};
}

void Description::affine(Step& s, int64_t height, int64_t width, const double* p) {
  finite(p + 2, 6);
  std::copy_n(p + 2, 6, s.number);
  for (int64_t c = 0; c < 3; ++c) s.number[6 + c] = byte(p[9 + c]);
  const Walk walk = p[8] != 0                                        ? Walk::Linear
                    : p[3] == 0 && p[5] == 0                         ? Walk::Steps  // a scale, by steps of zero across
                    : stoker::warp::fits_fixed(p + 2, width, height) ? Walk::Fixed
                                                                     : Walk::Steps;
  s.kind = static_cast<int32_t>(walk);
}

void Description::project(Step& s, const double* p) {
  const int64_t sampling = whole(p[11]);
  const bool projective = p[10] != 0;
  if (sampling < 0 || sampling > 2 || (!projective && sampling == 0)) throw InvalidRecipe{"an unknown interpolation"};
  finite(p + 2, projective ? 8 : 6);
  std::copy_n(p + 2, 8, s.number);
  for (int i = 0; i < 3; ++i) s.number[8 + i] = byte(p[12 + i]);
  s.kind = static_cast<int32_t>(sampling) | (projective ? 4 : 0);
}

void Description::torch_grid(Step& s, int64_t height, int64_t width, const double* p) {
  const Table& points = table(p[7]);
  if (int64_t{points.channels} * points.item_bytes * 256 < height * width * 8 ||
      address_of(points.data) % sizeof(float))
    throw InvalidRecipe{"a grid of another size"};
  s.extra = address_of(points.data);
  s.kind = p[2] != 0;
  std::copy_n(p + 3, 4, s.number + 8);
}

}  // namespace stoker::recipe::gpu
