// SPDX-License-Identifier: Apache-2.0
// Recipe steps on images of floats: torch's results for tensors of floats after `ToTensor`.
//
// Images are [H,W,C] of F32 with one or three channels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "pixel/rows.hpp"
#include "recipe/arrange.hpp"
#include "recipe/images.hpp"
#include "recipe/pixels.hpp"
#include "shared/border.hpp"
#include "torch/float_color.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kItem = sizeof(float);

// ---- operations on single values ----

// Replace every value of a row by f(value, number), with one number per channel.
template <class F>
void change(float* values, int64_t n, const float* numbers, int64_t channels, F&& f) {
  if (channels == 1) {
    const float number = numbers[0];
    for (int64_t i = 0; i < n; ++i) values[i] = f(values[i], number);
    return;
  }
  constexpr int64_t kPattern = 48;
  float pattern[kPattern];
  for (int64_t i = 0; i < kPattern; ++i) pattern[i] = numbers[i % 3];
  int64_t i = 0;
  for (; i + kPattern <= n; i += kPattern)
    for (int64_t k = 0; k < kPattern; ++k) values[i + k] = f(values[i + k], pattern[k]);
  for (int64_t k = 0; i < n; ++i, ++k) values[i] = f(values[i], pattern[k]);
}

void operate(Pointwise kind, float* v, int64_t n, const float* numbers, int64_t channels) {
  const auto with = [&](auto&& f) { change(v, n, numbers, channels, f); };
  switch (kind) {
    case Pointwise::Add: return with([](float x, float c) { return x + c; });
    case Pointwise::Subtract: return with([](float x, float c) { return x - c; });
    case Pointwise::SubtractFrom: return with([](float x, float c) { return c - x; });
    case Pointwise::Multiply: return with([](float x, float c) { return x * c; });
    case Pointwise::Divide: return with([](float x, float c) { return x / c; });
    case Pointwise::AtLeast: return with([](float x, float c) { return x < c ? c : x; });
    case Pointwise::AtMost: return with([](float x, float c) { return x > c ? c : x; });
    case Pointwise::Floor: return with([](float x, float) { return std::floor(x); });
    case Pointwise::Solarize: return with([](float x, float c) { return x >= c ? 1.0f - x : x; });
    case Pointwise::kCount: break;
  }
}

void pointwise(Images& images, const View& v, const double* p) {
  const int64_t count = whole(p[0]), channels = v.shape[2], n = v.shape[1] * channels;
  const View out = images.alike_floats(v);
  RowsOf<float> rows(v);
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    auto* to = reinterpret_cast<float*>(out.data + y * out.stride[0]);
    std::copy_n(rows.row(y), n, to);
    for (int64_t at = 1; at <= count; at += 4) {
      const float numbers[3] = {static_cast<float>(p[at + 1]), static_cast<float>(p[at + 2]),
                                static_cast<float>(p[at + 3])};
      const bool same = std::memcmp(numbers, numbers + 1, 2 * kItem) == 0;
      operate(static_cast<Pointwise>(p[at]), to, n, numbers, same ? 1 : channels);
    }
  }
}

// ---- positions of values ----

// View pixels as blocks of bytes; copy them to work(1) if their channels are not contiguous.
View as_bytes(Images& images, View v) {
  if (v.shape[2] > 1 && v.stride[2] != kItem) {
    View out = v;
    out.set_contiguous_strides();
    out.data = images.work(1).get(static_cast<size_t>(out.elements() * kItem));
    RowsOf<float> rows(v);
    for (int64_t y = 0; y < v.shape[0]; ++y)
      std::memcpy(out.data + y * out.stride[0], rows.row(y), static_cast<size_t>(rows.bytes()));
    v = out;
  }
  v.dtype = DType::U8;
  v.shape[2] *= kItem;
  v.stride[2] = 1;
  return v;
}

void pad(Images& images, const View& v, const double* p) {
  const int64_t left = whole(p[0]), top = whole(p[1]), height = side(p[2]), width = side(p[3]);
  float fill[3];
  for (int i = 0; i < 3; ++i) fill[i] = static_cast<float>(p[4 + i]);
  uint8_t bytes[sizeof fill];
  std::memcpy(bytes, fill, sizeof fill);
  const View out = images.fresh_floats(height, width, v.shape[2]);
  recipe::pad(as_bytes(images, v), left, top, bytes, as_bytes(images, out));
}

void pad_edges(Images& images, const View& v, const double* p) {
  const View out = images.fresh_floats(side(p[2]), side(p[3]), v.shape[2]);
  recipe::pad_edges(as_bytes(images, v), whole(p[0]), whole(p[1]), static_cast<Border>(p[4]), as_bytes(images, out));
}

void channels(Images& images, const View& v, const double* p) {
  const int64_t at[3] = {whole(p[0]), whole(p[1]), whole(p[2])};
  const View out = images.alike_floats(v);
  RowsOf<float> rows(v);
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    const float* from = rows.row(y);
    auto* to = reinterpret_cast<float*>(out.data + y * out.stride[0]);
    for (int64_t x = 0; x < v.shape[1]; ++x, from += 3)
      for (const int64_t c : at) *to++ = from[c];
  }
}

void arrange(Images& images, const View& v, const double* p) {
  const Arrangement order(p, v.shape[0], v.shape[1], v.shape[2]);
  const View out = images.fresh_floats(v.shape[0], v.shape[1] * v.shape[2] * order.copies(), 1);
  RowsOf<float> rows(v);
  std::vector<float> plane(static_cast<size_t>(v.shape[1]));
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    const float* row = rows.row(y);
    for (int64_t c = 0; c < v.shape[2]; ++c) {
      for (int64_t x = 0; x < v.shape[1]; ++x) plane[static_cast<size_t>(x)] = row[x * v.shape[2] + c];
      order.put(reinterpret_cast<float*>(out.data), c, y, 0, v.shape[1], plane.data());
    }
  }
}

// ---- colours ----

torch_float_color::Generation generation(const double* p) {
  return p[0] == 1 ? torch_float_color::Generation::First : torch_float_color::Generation::Second;
}

void contrast(Images& images, const View& v, const double* p) {
  const torch_sum::Order order = order_of(p + 2);
  const torch_float_color::Blocks blocks{whole(p[4]), p[5] != 0};
  torch_float_color::contrast(generation(p), v, p[1], order, blocks, images.alike_floats(v), images.work(0));
}

void sharpen(Images& images, const View& v, const double* p, bool products) {
  if (!torch_float_color::sharpen(generation(p), v, p[1], products, images.alike_floats(v), images.work(0),
                                  images.work(1)))
    throw InvalidRecipe{"an image that cannot be filtered"};
}

}  // namespace

void to_floats(Images& images, const View& v, const double* p) {
  const Table& t = images.table(p[0]);
  const pixel::LookupFn lookup = pixel::kernels().lookup[kItem];
  const View out = images.alike_floats(v);
  const int64_t per_channel = t.channels > 1 ? 256 * kItem : 0;
  Rows rows(v);
  Planes3 bytes;
  Planes3Of<float> floats;
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    uint8_t* to = out.data + y * out.stride[0];
    if (v.shape[2] == 1) {
      lookup(to, rows.row(y), t.data, static_cast<int>(v.shape[1]));
      continue;
    }
    bytes.each(rows.row(y), v.shape[1], [&](int64_t x, int n) {
      for (int c = 0; c < 3; ++c) lookup(floats.at[c], bytes.at[c], t.data + c * per_channel, n);
      floats.put(to, x, n);
    });
  }
}

void make_floats(Images& images, Op op, const View& v, const double* p) {
  const auto sized = [&] { return images.fresh_floats(side(p[0]), side(p[1]), v.shape[2]); };
  switch (op) {
    case Op::Crop: images.push(cropped(v, p)); return;
    case Op::Transpose: images.push(transposed(v, p)); return;
    case Op::Pointwise: pointwise(images, v, p); return;
    case Op::FloatPad: pad(images, v, p); return;
    case Op::PadEdges: pad_edges(images, v, p); return;
    case Op::Arrange: arrange(images, v, p); return;
    case Op::Spread: images.push(thrice(v)); return;
    case Op::Channels: channels(images, v, p); return;
    case Op::Correlate: correlate(images, v, p, false, images.alike_floats(v)); return;
    case Op::TorchProducts: correlate(images, v, p, true, images.alike_floats(v)); return;
    case Op::TorchResizeFloats: torch_resize_floats(images, v, p, sized()); return;
    case Op::TorchPick: torch_pick(images, v, p, sized()); return;
    case Op::TorchWarp: torch_warp(v, p, sized()); return;
    case Op::TorchGrid: torch_grid(images, v, p, sized()); return;
    case Op::TorchLuma:
      torch_float_color::gray(generation(p), v, images.fresh_floats(v.shape[0], v.shape[1], 1));
      return;
    case Op::TorchSaturate: torch_float_color::saturate(generation(p), v, p[1], images.alike_floats(v)); return;
    case Op::FloatContrast: contrast(images, v, p); return;
    case Op::TorchHue: torch_float_color::hue(generation(p), v, p[1], images.alike_floats(v)); return;
    case Op::TorchAutocontrast: torch_float_color::autocontrast(generation(p), v, images.alike_floats(v)); return;
    case Op::TorchSharpen: sharpen(images, v, p, false); return;
    case Op::TorchSharpenProducts: sharpen(images, v, p, true); return;
    default: throw InvalidRecipe{"an unknown step"};
  }
}

}  // namespace stoker::recipe
