// SPDX-License-Identifier: Apache-2.0
// Recipe steps that change values: tables, colours, filters, mixtures.
#include <cmath>

#include "filter/box_blur.hpp"
#include "filter/correlate.hpp"
#include "filter/histogram.hpp"
#include "recipe/images.hpp"
#include "recipe/mixtures.hpp"
#include "recipe/pixels.hpp"
#include "shared/pillow_color.hpp"
#include "torch/color.hpp"
#include "torch/products.hpp"

namespace stoker::recipe {

namespace {

template <class F>
void each(const View& v, const View& out, F f) {
  for (int64_t y = 0; y < v.shape[0]; ++y)
    for (int64_t x = 0; x < v.shape[1]; ++x)
      f(v.data + y * v.stride[0] + x * v.stride[1], out.data + y * out.stride[0] + x * out.stride[1]);
}

void mapped(Images& images, const View& v, const uint8_t* values, int64_t per_channel) {
  histogram::apply(v, values, per_channel, images.alike(v));
}

void map(Images& images, const View& v, const double* p) {
  const Table& t = images.table(p[0]);
  mapped(images, v, t.data, t.channels > 1 ? 256 : 0);
}

void to_luma(Images& images, const View& v) {
  const View out = images.fresh(v.shape[0], v.shape[1], 1);
  each(v, out, [&](const uint8_t* from, uint8_t* to) { *to = luma(from, v.stride[2]); });
}

void contrast(Images& images, const View& v, float factor) {
  int64_t sum = 0;
  const View none = v;
  each(v, none, [&](const uint8_t* from, uint8_t*) { sum += v.shape[2] == 3 ? luma(from, v.stride[2]) : *from; });
  const int mean = mean_of(sum, v.shape[0] * v.shape[1]);
  uint8_t values[256];
  for (int i = 0; i < 256; ++i) values[i] = blend(mean, i, factor);
  mapped(images, v, values, 0);
}

void hue(Images& images, const View& v, uint8_t shift) {
  const View out = images.fresh(v.shape[0], v.shape[1], 3);
  each(v, out, [&](const uint8_t* from, uint8_t* to) {
    const uint8_t rgb[3] = {from[0], from[v.stride[2]], from[2 * v.stride[2]]};
    uint8_t hsv[3];
    hsv_of_rgb(rgb, hsv);
    hsv[0] = static_cast<uint8_t>(hsv[0] + shift);
    rgb_of_hsv(hsv, to);
  });
}

void by_histogram(Images& images, const View& v, void (*table_of)(const int64_t*, uint8_t*)) {
  uint8_t values[3 * 256];
  int64_t counts[3 * 256] = {};
  histogram::count(v, counts);
  for (int64_t c = 0; c < v.shape[2]; ++c) table_of(counts + 256 * c, values + 256 * c);
  mapped(images, v, values, 256);
}

// Blend with the smoothed image; the outermost pixels are not smoothed.
void sharpen(Images& images, const View& source, float factor) {
  const View v = images.packed(source);
  const View out = images.fresh(v.shape[0], v.shape[1], v.shape[2]);
  const int64_t channels = v.shape[2], count = v.shape[1] * channels;
  for (int64_t y = 0; y < v.shape[0]; ++y) {
    const uint8_t* row = v.data + y * v.stride[0];
    uint8_t* to = out.data + y * out.stride[0];
    const bool inside = y > 0 && y + 1 < v.shape[0] && v.shape[1] > 2;
    if (inside) sharpen_row(row, v.stride[0], channels, count, factor, to);
    for (int64_t i = 0; i < count; ++i) {
      if (inside && i == channels) i = count - channels;
      to[i] = blend(row[i], row[i], factor);
    }
  }
}

void blur(Images& images, const View& v, const double* p) {
  const View from = images.packed(v), out = images.alike(v);
  if (!box_blur::blur(from, radius_of(p, 0), radius_of(p, 1), static_cast<int>(p[2]), out, images.work(0)))
    throw InvalidRecipe{"a blur of that radius"};
}

torch_color::Generation generation(const double* p) {
  return p[0] == 1 ? torch_color::Generation::First : torch_color::Generation::Second;
}

void torch_contrast(Images& images, const View& v, const double* p) {
  uint8_t values[256];
  torch_color::contrast_table(generation(p), v, p[1], order_of(p + 2), values);
  mapped(images, v, values, 0);
}

void torch_sharpen(Images& images, const View& v, torch_color::Generation generation, double factor, bool products) {
  if (!torch_color::sharpen(generation, v, factor, products, images.alike(v), images.work(0), images.work(1)))
    throw InvalidRecipe{"an image that cannot be filtered"};
}

void channels(Images& images, const View& v, const double* p) {
  const View out = images.alike(v);
  const int64_t at[3] = {whole(p[0]), whole(p[1]), whole(p[2])};
  each(v, out, [&](const uint8_t* from, uint8_t* to) {
    for (int64_t c = 0; c < 3; ++c) to[c] = from[at[c] * v.stride[2]];
  });
}

void mix(Images& images, const View& v, const double* p) {
  const int64_t count = whole(p[0]);
  std::vector<Part> parts;
  for (int64_t i = -1; i + 1 < count; i += 2) {
    const View image_i = i < 0 ? v : images.at(whole(p[1 + i]));
    const Table& t = images.table(p[i < 0 ? 1 : 2 + i]);
    parts.push_back({image_i, reinterpret_cast<const float*>(t.data), t.channels > 1 ? 256 : 0});
  }
  recipe::mix(parts, images.alike(v));
}

void blend(Images& images, const View& v, const double* p) {
  recipe::blend(v, images.at(whole(p[0])), static_cast<float>(p[1]), images.alike(v));
}

}  // namespace

void correlate(Images& images, const View& v, const double* p, bool products, const View& out) {
  const int64_t count = whole(p[0]), height = whole(p[1]), width = whole(p[2]);
  auto* weights = reinterpret_cast<float*>(images.work(1).get(static_cast<size_t>(count) * sizeof(float)));
  for (int64_t i = 0; i < count - 2; ++i) weights[i] = static_cast<float>(p[3 + i]);
  correlate::Window window{weights, height, width, height / 2, width / 2};
  window.fused = true;
  const auto filter = products ? torch_products::correlate : correlate::correlate;
  if (!filter(v, window, out, images.work(0))) throw InvalidRecipe{"an image that cannot be filtered"};
}

void make_values(Images& images, Op op, const View& v, const double* p) {
  using Generation = torch_color::Generation;
  switch (op) {
    case Op::Map: map(images, v, p); return;
    case Op::Floats: to_floats(images, v, p); return;
    case Op::Luma: to_luma(images, v); return;
    case Op::Spread: images.push(thrice(v)); return;
    case Op::Contrast: contrast(images, v, static_cast<float>(p[0])); return;
    case Op::Saturate: recipe::saturate(v, static_cast<float>(p[0]), images.alike(v)); return;
    case Op::Hue: hue(images, v, byte(p[0])); return;
    case Op::Autocontrast: by_histogram(images, v, histogram::stretched<int64_t>); return;
    case Op::Equalize: by_histogram(images, v, histogram::equalized_in_steps<int64_t>); return;
    case Op::Sharpen: sharpen(images, v, static_cast<float>(p[0])); return;
    case Op::Correlate: correlate(images, v, p, false, images.alike(v)); return;
    case Op::TorchProducts: correlate(images, v, p, true, images.alike(v)); return;
    case Op::Blur: blur(images, v, p); return;
    case Op::Channels: channels(images, v, p); return;
    case Op::Mix: mix(images, v, p); return;
    case Op::Blend: blend(images, v, p); return;
    case Op::TorchLuma: torch_color::gray(generation(p), v, images.fresh(v.shape[0], v.shape[1], 1)); return;
    case Op::TorchContrast: torch_contrast(images, v, p); return;
    case Op::TorchSaturate: torch_color::saturate(generation(p), v, p[1], images.alike(v)); return;
    case Op::TorchHue: torch_color::hue(generation(p), v, p[1], images.alike(v)); return;
    case Op::TorchSharpen: torch_sharpen(images, v, generation(p), p[1], false); return;
    case Op::TorchSharpenProducts: torch_sharpen(images, v, generation(p), p[1], true); return;
    case Op::TorchAutocontrast:
      by_histogram(images, v,
                   generation(p) == Generation::First ? torch_color::first_autocontrast_table<int64_t>
                                                      : torch_color::autocontrast_table<int64_t>);
      return;
    case Op::TorchEqualize: by_histogram(images, v, histogram::equalized_whole<int64_t>); return;
    default: throw InvalidRecipe{"an unknown step"};
  }
}

}  // namespace stoker::recipe
