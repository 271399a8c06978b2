// SPDX-License-Identifier: Apache-2.0
// Recipe steps that move pixels: windows, frames, sizes, flips and warps.
#include <algorithm>
#include <utility>

#include "recipe/images.hpp"
#include "recipe/pixels.hpp"
#include "torch/resize.hpp"
#include "torch/resize_float.hpp"
#include "torch/warp.hpp"
#include "warp/project.hpp"
#include "warp/warp.hpp"

namespace stoker::recipe {

View cropped(View v, const double* p) {
  const int64_t x0 = whole(p[0]), y0 = whole(p[1]), x1 = whole(p[2]), y1 = whole(p[3]);
  v.data += y0 * v.stride[0] + x0 * v.stride[1];
  v.shape[0] = y1 - y0;
  v.shape[1] = x1 - x0;
  return v;
}

namespace {

void resize(Images& images, const View& v, const double* p) {
  const Resizing r(v, p);
  const View one = once(v);
  const View out = images.fresh(r.vertical.out_size, r.horizontal.out_size, one.shape[2]);
  if (!resample::resample_into(one, r.vertical, r.horizontal, out, images.work(0), r.order))
    throw InvalidRecipe{"a region that is not finite"};
  if (one.shape[2] != v.shape[2]) images.replace_last(thrice(out));
}

}  // namespace

View transposed(View v, const double* p) {
  const int64_t kind = whole(p[0]);
  // Pillow's transpositions: mirror rows, mirror columns, then exchange both axes.
  static constexpr bool kFlipX[] = {true, false, true, true, false, false, true};
  static constexpr bool kFlipY[] = {false, true, false, true, true, false, true};
  if (kFlipX[kind]) {
    v.data += (v.shape[1] - 1) * v.stride[1];
    v.stride[1] = -v.stride[1];
  }
  if (kFlipY[kind]) {
    v.data += (v.shape[0] - 1) * v.stride[0];
    v.stride[0] = -v.stride[0];
  }
  if (kind == 2 || kind > 3) {
    std::swap(v.shape[0], v.shape[1]);
    std::swap(v.stride[0], v.stride[1]);
  }
  return v;
}

namespace {

void affine(Images& images, const View& v, const double* p) {
  const View out = images.fresh(side(p[0]), side(p[1]), v.shape[2]);
  if (!warp::affine(v, p + 2, p[8] != 0, p + 9, 1, out, images.work(0)))
    throw InvalidRecipe{"a matrix that is not finite"};
}

void project(Images& images, const View& v, const double* p) {
  const View out = images.fresh(side(p[0]), side(p[1]), v.shape[2]);
  const uint8_t fill[3] = {byte(p[12]), byte(p[13]), byte(p[14])};
  if (!warp::project(v, p + 2, p[10] != 0, static_cast<warp::Sampling>(p[11]), fill, out))
    throw InvalidRecipe{"a matrix that is not finite"};
}

void pad_edges(Images& images, const View& v, const double* p) {
  const View out = images.fresh(side(p[2]), side(p[3]), v.shape[2]);
  recipe::pad_edges(v, whole(p[0]), whole(p[1]), static_cast<Border>(p[4]), out);
}

void torch_resize(Images& images, const View& v, const double* p) {
  const torch_resize::Filter filter = filter_of(p[2], p[3] != 0);
  const View out = images.fresh(side(p[0]), side(p[1]), v.shape[2]);
  if (!torch_resize::resize(v, filter, p[3] != 0, out, images.resizes(), images.work(0)))
    throw InvalidRecipe{"an image that cannot be resized"};
}

void sample(const View& v, const torch_warp::Grid& grid, bool linear, const double* fill, const View& out) {
  torch_warp::Fill outside{fill[0] != 0, {}, fill[0] == 2};
  for (int i = 0; i < 3; ++i) outside.value[i] = static_cast<float>(fill[1 + i]);
  if (!torch_warp::sample(v, grid, linear, outside, out)) throw InvalidRecipe{"an image that cannot be sampled"};
}

}  // namespace

void pad_into(const View& v, const double* p, const View& out) {
  const uint8_t fill[3] = {byte(p[4]), byte(p[5]), byte(p[6])};
  recipe::pad(v, whole(p[0]), whole(p[1]), fill, out);
}

void torch_resize_floats(Images& images, const View& v, const double* p, const View& out) {
  const torch_resize::Way way = way_of(p[2], p[3]);
  if (!torch_resize::resize_in_floats(v, static_cast<torch_resize::Filter>(p[2]), way, out, images.work(0)))
    throw InvalidRecipe{"an image that cannot be resized"};
}

void torch_pick(Images& images, const View& v, const double* p, const View& out) {
  if (!torch_resize::pick(v, p[2] != 0, out, images.work(0))) throw InvalidRecipe{"an image that cannot be resized"};
}

void torch_warp(const View& v, const double* p, const View& out) {
  torch_warp::Grid grid{};
  for (int i = 0; i < 8; ++i) grid.m[i] = static_cast<float>(p[2 + i]);
  grid.projective = p[10] != 0;
  sample(v, grid, p[11] != 0, p + 12, out);
}

void torch_grid(Images& images, const View& v, const double* p, const View& out) {
  torch_warp::Grid grid{};
  grid.given = reinterpret_cast<const float*>(images.table(p[7]).data);
  sample(v, grid, p[2] != 0, p + 3, out);
}

bool make_shape(Images& images, Op op, const View& v, const double* p) {
  const auto sized = [&] { return images.fresh(side(p[0]), side(p[1]), v.shape[2]); };
  switch (op) {
    case Op::Crop: images.push(cropped(v, p)); return true;
    case Op::Resize: resize(images, v, p); return true;
    case Op::Transpose: images.push(transposed(v, p)); return true;
    case Op::Affine: affine(images, v, p); return true;
    case Op::Pad: pad_into(v, p, images.fresh(side(p[2]), side(p[3]), v.shape[2])); return true;
    case Op::Project: project(images, v, p); return true;
    case Op::PadEdges: pad_edges(images, v, p); return true;
    case Op::TorchResize: torch_resize(images, v, p); return true;
    case Op::TorchResizeFloats: torch_resize_floats(images, v, p, sized()); return true;
    case Op::TorchPick: torch_pick(images, v, p, sized()); return true;
    case Op::TorchWarp: torch_warp(v, p, sized()); return true;
    case Op::TorchGrid: torch_grid(images, v, p, sized()); return true;
    default: return false;
  }
}

}  // namespace stoker::recipe
