// SPDX-License-Identifier: Apache-2.0
// Steps of recipes whose images are floats: what tensors of floats get from torch, behind `ToTensor`.
//
// They are [H,W,C] of F32, with one or three channels.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "border.hpp"
#include "pixel_rows.hpp"
#include "recipe_images.hpp"
#include "recipe_pixels.hpp"
#include "torch_float_color.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kItem = sizeof(float);

// ---- operations on single values ----

// With a number of its channel's. The order is part of the Python side's contract (frontends/torchvision/floats.py).
enum class Pointwise : int64_t { Add = 0, Subtract, SubtractFrom, Multiply, Divide, AtLeast, AtMost, Floor, Solarize, kCount };

// f(value, number) of all values of a row, whose numbers come again with every pixel.
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
  if (count % 4) throw Bad{"operations that end early"};
  for (int64_t at = 1; at <= count; at += 4)
    if (whole(p[at]) < 0 || whole(p[at]) >= static_cast<int64_t>(Pointwise::kCount)) throw Bad{"an unknown operation"};
  const View out = images.alike_floats(v);
  RowsOf<float> rows(v);
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    auto* to = reinterpret_cast<float*>(out.data + y * out.stride[0]);
    std::copy_n(rows.row(y), n, to);
    for (int64_t at = 1; at <= count; at += 4) {
      const float numbers[3] = {static_cast<float>(p[at + 1]), static_cast<float>(p[at + 2]), static_cast<float>(p[at + 3])};
      const bool same = std::memcmp(numbers, numbers + 1, 2 * kItem) == 0;
      operate(static_cast<Pointwise>(p[at]), to, n, numbers, same ? 1 : channels);
    }
  }
}

// ---- where values are ----

// Pixels as so many bytes; a copy in work(1) if their channels do not lie side by side.
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
  if (left < 0 || top < 0 || left + v.shape[1] > width || top + v.shape[0] > height)
    throw Bad{"an image that does not fit into its frame"};
  float fill[3];
  for (int i = 0; i < 3; ++i) fill[i] = static_cast<float>(p[4 + i]);
  uint8_t bytes[sizeof fill];
  std::memcpy(bytes, fill, sizeof fill);
  const View out = images.fresh_floats(height, width, v.shape[2]);
  recipe::pad(as_bytes(images, v), left, top, bytes, as_bytes(images, out));
}

void pad_edges(Images& images, const View& v, const double* p) {
  const int64_t left = whole(p[0]), top = whole(p[1]), kind = whole(p[4]);
  if (kind < 0 || kind >= static_cast<int64_t>(Border::Constant)) throw Bad{"an unknown border"};
  const View out = images.fresh_floats(side(p[2]), side(p[3]), v.shape[2]);
  recipe::pad_edges(as_bytes(images, v), left, top, static_cast<Border>(kind), as_bytes(images, out));
}

void spread(Images& images, const View& v) {
  if (v.shape[2] != 1) throw Bad{"other than one channel to spread"};
  images.push(thrice(v));
}

void channels(Images& images, const View& v, const double* p) {
  int64_t at[3];
  for (int c = 0; c < 3; ++c) {
    at[c] = whole(p[c]);
    if (at[c] < 0 || at[c] > 2) throw Bad{"a channel that is not there"};
  }
  const View out = images.alike_floats(v);
  RowsOf<float> rows(v);
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    const float* from = rows.row(y);
    auto* to = reinterpret_cast<float*>(out.data + y * out.stride[0]);
    for (int64_t x = 0; x < v.shape[1]; ++x, from += 3)
      for (const int64_t c : at) *to++ = from[c];
  }
}

// ---- colours ----

torch_float_color::Generation generation(const double* p) {
  return p[0] == 1 ? torch_float_color::Generation::First : torch_float_color::Generation::Second;
}

const View& colored(const View& v) {
  if (v.shape[2] != 3) throw Bad{"a change of colours of other than three channels"};
  return v;
}

void contrast(Images& images, const View& v, const double* p) {
  const torch_sum::Order order = order_of(p + 2);
  const torch_float_color::Blocks blocks{whole(p[4]), p[5] != 0};
  if (!order.valid()) throw Bad{"a sum in an unknown order"};
  if (blocks.size < 1) throw Bad{"blocks without values"};
  torch_float_color::contrast(generation(p), v, p[1], order, blocks, images.alike_floats(v), images.work(0));
}

void hue(Images& images, const View& v, const double* p) {
  if (!(std::fabs(p[1]) <= 0.5)) throw Bad{"a hue that turns by more than half a circle"};
  torch_float_color::hue(generation(p), colored(v), p[1], images.alike_floats(v));
}

void sharpen(Images& images, const View& v, const double* p, bool products) {
  if (v.shape[0] < 3 || v.shape[1] < 3) throw Bad{"an image without an inside"};
  if (!torch_float_color::sharpen(generation(p), v, p[1], products, images.alike_floats(v), images.work(0), images.work(1)))
    throw Bad{"an image that cannot be filtered"};
}

}  // namespace

void to_floats(Images& images, const View& v, const double* p) {
  const Table& t = images.table(p[0]);
  if (t.item_bytes != kItem || (t.channels != 1 && t.channels != v.shape[2])) throw Bad{"a table of another kind"};
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

bool make_floats(Images& images, Op op, const View& v, const double* p) {
  const auto sized = [&] { return images.fresh_floats(side(p[0]), side(p[1]), v.shape[2]); };
  switch (op) {
    case Op::Crop: images.push(cropped(v, p)); return true;
    case Op::Transpose: images.push(transposed(v, p)); return true;
    case Op::Pointwise: pointwise(images, v, p); return true;
    case Op::FloatPad: pad(images, v, p); return true;
    case Op::PadEdges: pad_edges(images, v, p); return true;
    case Op::Spread: spread(images, v); return true;
    case Op::Channels: channels(images, colored(v), p); return true;
    case Op::Correlate: correlate(images, v, p, false, images.alike_floats(v)); return true;
    case Op::TorchProducts: correlate(images, v, p, true, images.alike_floats(v)); return true;
    case Op::TorchResizeFloats: torch_resize_floats(images, v, p, sized()); return true;
    case Op::TorchPick: torch_pick(images, v, p, sized()); return true;
    case Op::TorchWarp: torch_warp(v, p, sized()); return true;
    case Op::TorchGrid: torch_grid(images, v, p, sized()); return true;
    case Op::TorchLuma:
      torch_float_color::gray(generation(p), colored(v), images.fresh_floats(v.shape[0], v.shape[1], 1));
      return true;
    case Op::TorchSaturate:
      torch_float_color::saturate(generation(p), colored(v), p[1], images.alike_floats(v));
      return true;
    case Op::FloatContrast: contrast(images, v, p); return true;
    case Op::TorchHue: hue(images, v, p); return true;
    case Op::TorchAutocontrast: torch_float_color::autocontrast(generation(p), v, images.alike_floats(v)); return true;
    case Op::TorchSharpen: sharpen(images, v, p, false); return true;
    case Op::TorchSharpenProducts: sharpen(images, v, p, true); return true;
    default: return false;
  }
}

}  // namespace stoker::recipe
