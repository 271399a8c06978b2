// SPDX-License-Identifier: Apache-2.0
// Steps of recipes that change values: tables, colours, filters, mixtures.
#include <cmath>

#include "box_blur.hpp"
#include "correlate.hpp"
#include "histogram.hpp"
#include "pillow_color.hpp"
#include "recipe_images.hpp"
#include "recipe_mixtures.hpp"
#include "recipe_pixels.hpp"
#include "torch_color.hpp"
#include "torch_products.hpp"

namespace stoker::recipe {

namespace {

constexpr int kMostPasses = 16;

template <class F>
void each(const View& v, const View& out, F f) {
  for (int64_t y = 0; y < v.shape[0]; ++y)
    for (int64_t x = 0; x < v.shape[1]; ++x)
      f(v.data + y * v.stride[0] + x * v.stride[1], out.data + y * out.stride[0] + x * out.stride[1]);
}

void mapped(Images& images, const View& v, const uint8_t* values, int64_t per_channel) {
  recipe::map(v, values, per_channel, images.alike(v));
}

void map(Images& images, const View& v, const double* p) {
  const Table& t = images.table(p[0]);
  if (t.item_bytes != 1 || (t.channels != 1 && t.channels != v.shape[2])) throw Bad{"a table of another kind"};
  mapped(images, v, t.data, t.channels > 1 ? 256 : 0);
}

void to_luma(Images& images, const View& v) {
  if (v.shape[2] != 3) throw Bad{"a luma of other than three channels"};
  const View out = images.fresh(v.shape[0], v.shape[1], 1);
  each(v, out, [&](const uint8_t* from, uint8_t* to) { *to = luma(from, v.stride[2]); });
}

void spread(Images& images, const View& v) {
  if (v.shape[2] != 1) throw Bad{"other than one channel to spread"};
  images.push(thrice(v));
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

const View& colored(const View& v) {
  if (v.shape[2] != 3) throw Bad{"a change of colours of other than three channels"};
  return v;
}

void saturate(Images& images, const View& v, float factor) {
  if (v.shape[2] != 3) throw Bad{"a saturation of other than three channels"};
  recipe::saturate(v, factor, images.alike(v));
}

void hue(Images& images, const View& v, uint8_t shift) {
  if (v.shape[2] != 3) throw Bad{"a hue of other than three channels"};
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
  count_values(v, counts);
  for (int64_t c = 0; c < v.shape[2]; ++c) table_of(counts + 256 * c, values + 256 * c);
  mapped(images, v, values, 256);
}

// Blended with itself smoothed; the outermost pixels are not smoothed.
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
  const int64_t passes = whole(p[2]);
  if (passes < 1 || passes > kMostPasses) throw Bad{"a blur without passes, or with too many"};
  float radii[2];
  for (int i = 0; i < 2; ++i) {
    radii[i] = static_cast<float>(p[i]);
    if (p[3] != 0) radii[i] = box_blur::radius_of_bell(radii[i], static_cast<int>(passes));
  }
  const View from = images.packed(v), out = images.alike(v);
  if (!box_blur::blur(from, radii[0], radii[1], static_cast<int>(passes), out, images.work(0)))
    throw Bad{"a blur of that radius"};
}

torch_color::Generation generation(const double* p) {
  return p[0] == 1 ? torch_color::Generation::First : torch_color::Generation::Second;
}

void torch_contrast(Images& images, const View& v, const double* p) {
  const torch_sum::Order order = order_of(p + 2);
  if (!torch_color::can_sum(v.shape[0] * v.shape[1], order)) throw Bad{"a mean that is not exact"};
  uint8_t values[256];
  torch_color::contrast_table(generation(p), v, p[1], order, values);
  mapped(images, v, values, 0);
}

void torch_sharpen(Images& images, const View& v, torch_color::Generation generation, double factor, bool products) {
  if (v.shape[0] < 3 || v.shape[1] < 3) throw Bad{"an image without an inside"};
  if (!torch_color::sharpen(generation, v, factor, products, images.alike(v), images.work(0), images.work(1))) throw Bad{"an image that cannot be filtered"};
}

void torch_hue(Images& images, const View& v, torch_color::Generation generation, double shift) {
  if (!(std::fabs(shift) <= 0.5)) throw Bad{"a hue that turns by more than half a circle"};
  torch_color::hue(generation, colored(v), shift, images.alike(v));
}

void channels(Images& images, const View& v, const double* p) {
  const View out = images.alike(colored(v));
  int64_t at[3];
  for (int c = 0; c < 3; ++c) at[c] = whole(p[c]);
  for (const int64_t c : at)
    if (c < 0 || c > 2) throw Bad{"a channel that is not there"};
  each(v, out, [&](const uint8_t* from, uint8_t* to) {
    for (int64_t c = 0; c < 3; ++c) to[c] = from[at[c] * v.stride[2]];
  });
}

const View& as_large(const View& other, const View& v) {
  if (is_floats(other)) throw Bad{"a mixture of bytes and floats"};
  for (int d = 0; d < 3; ++d)
    if (other.shape[d] != v.shape[d]) throw Bad{"a mixture of images of different sizes"};
  return other;
}

void mix(Images& images, const View& v, const double* p) {
  const int64_t count = whole(p[0]);
  if (count < 1 || count % 2 == 0) throw Bad{"a mixture that ends early"};
  std::vector<Part> parts;
  for (int64_t i = -1; i + 1 < count; i += 2) {
    const View image_i = i < 0 ? v : images.at(whole(p[1 + i]));
    const Table& t = images.table(p[i < 0 ? 1 : 2 + i]);
    if (t.item_bytes != 4 || (t.channels != 1 && t.channels != v.shape[2])) throw Bad{"a table of another kind"};
    parts.push_back({as_large(image_i, v), reinterpret_cast<const float*>(t.data), t.channels > 1 ? 256 : 0});
  }
  recipe::mix(parts, images.alike(v));
}

void blend(Images& images, const View& v, const double* p) {
  const View other = images.at(whole(p[0]));
  recipe::blend(v, as_large(other, v), static_cast<float>(p[1]), images.alike(v));
}

}  // namespace

void correlate(Images& images, const View& v, const double* p, bool products, const View& out) {
  const int64_t count = whole(p[0]);
  const int64_t height = count > 2 ? side(p[1]) : 0, width = count > 2 ? side(p[2]) : 0;
  if (count < 3 || height > count || width > count || height * width != count - 2) throw Bad{"a filter of another size"};
  auto* weights = reinterpret_cast<float*>(images.work(1).get(static_cast<size_t>(count) * sizeof(float)));
  for (int64_t i = 0; i < count - 2; ++i) weights[i] = static_cast<float>(p[3 + i]);
  correlate::Window window{weights, height, width, height / 2, width / 2};
  window.fused = true;
  const auto filter = products ? torch_products::correlate : correlate::correlate;
  if (!filter(v, window, out, images.work(0))) throw Bad{"an image that cannot be filtered"};
}

bool make_values(Images& images, Op op, const View& v, const double* p) {
  using Generation = torch_color::Generation;
  switch (op) {
    case Op::Map: map(images, v, p); return true;
    case Op::Floats: to_floats(images, v, p); return true;
    case Op::Luma: to_luma(images, v); return true;
    case Op::Spread: spread(images, v); return true;
    case Op::Contrast: contrast(images, v, static_cast<float>(p[0])); return true;
    case Op::Saturate: saturate(images, v, static_cast<float>(p[0])); return true;
    case Op::Hue: hue(images, v, byte(p[0])); return true;
    case Op::Autocontrast: by_histogram(images, v, histogram::stretched<int64_t>); return true;
    case Op::Equalize: by_histogram(images, v, histogram::equalized_in_steps<int64_t>); return true;
    case Op::Sharpen: sharpen(images, v, static_cast<float>(p[0])); return true;
    case Op::Correlate: correlate(images, v, p, false, images.alike(v)); return true;
    case Op::TorchProducts: correlate(images, v, p, true, images.alike(v)); return true;
    case Op::Blur: blur(images, v, p); return true;
    case Op::Channels: channels(images, v, p); return true;
    case Op::Mix: mix(images, v, p); return true;
    case Op::Blend: blend(images, v, p); return true;
    case Op::TorchLuma: torch_color::gray(generation(p), colored(v), images.fresh(v.shape[0], v.shape[1], 1)); return true;
    case Op::TorchContrast: torch_contrast(images, v, p); return true;
    case Op::TorchSaturate: torch_color::saturate(generation(p), colored(v), p[1], images.alike(v)); return true;
    case Op::TorchHue: torch_hue(images, v, generation(p), p[1]); return true;
    case Op::TorchSharpen: torch_sharpen(images, v, generation(p), p[1], false); return true;
    case Op::TorchSharpenProducts: torch_sharpen(images, v, generation(p), p[1], true); return true;
    case Op::TorchAutocontrast:
      by_histogram(images, v, generation(p) == Generation::First ? torch_color::first_autocontrast_table<int64_t>
                                                                 : torch_color::autocontrast_table<int64_t>);
      return true;
    case Op::TorchEqualize: by_histogram(images, v, histogram::equalized_whole<int64_t>); return true;
    default: return false;
  }
}

}  // namespace stoker::recipe
