// SPDX-License-Identifier: Apache-2.0
// Description of a row's edges, tables, filters, mixtures and colours.
#include <algorithm>
#include <cmath>

#include "filter/box_blur.hpp"
#include "gpu_kernels/recipe_description.hpp"
#include "shared/border.hpp"
#include "torch/color.hpp"

namespace stoker::recipe::gpu {

namespace {

constexpr int64_t kMaxPasses = 16;

}  // namespace

// ---- edges, tables, filters ----

void Description::pad(const Image& from, const double* p, bool constant) {
  const int64_t left = whole(p[0]), top = whole(p[1]), height = side(p[2]), width = side(p[3]);
  const Border border = constant ? Border::Constant : static_cast<Border>(whole(p[4]));
  if (constant && (left < 0 || top < 0 || left + from.map.width > width || top + from.map.height > height))
    throw InvalidRecipe{"an image that does not fit into its frame"};
  if (!constant && (static_cast<int>(border) < 0 || border >= Border::Constant))
    throw InvalidRecipe{"an unknown border"};
  Step& s = step(from);
  s.kind = static_cast<int32_t>(border);
  s.number[0] = static_cast<double>(left);
  s.number[1] = static_cast<double>(top);
  for (int i = 0; i < 3 && constant; ++i) s.number[2 + i] = byte(p[4 + i]);
  make(s, height, width, s.in.channels);
}

void Description::map(const Image& from, const double* p) {
  const Table& t = table(p[0]);
  if (t.item_bytes != 1 || (t.channels != 1 && t.channels != from.map.channels))
    throw InvalidRecipe{"a table of another kind"};
  Step& s = step(from);
  s.extra = address_of(t.data);
  s.number[0] = t.channels > 1;
  alike(s);
}

void Description::correlate(const Image& from, const double* p) {
  const int64_t count = whole(p[0]);
  const int64_t height = count > 2 ? side(p[1]) : 0, width = count > 2 ? side(p[2]) : 0;
  if (count < 3 || height > count || width > count || height * width != count - 2)
    throw InvalidRecipe{"a filter of another size"};
  Step& s = step(from);
  float* weights = sent<float>(static_cast<size_t>(count - 2), &s.extra);
  for (int64_t i = 0; i < count - 2; ++i) weights[i] = static_cast<float>(p[3 + i]);
  s.number[0] = static_cast<double>(height);
  s.number[1] = static_cast<double>(width);
  row_.work += s.in.height * s.in.width * (count - 2);
  alike(s);
}

void Description::blur(const Image& from, const double* p) {
  const int64_t passes = whole(p[2]);
  if (passes < 1 || passes > kMaxPasses) throw InvalidRecipe{"a blur without passes, or with too many"};
  Step& s = step(from);
  Boxes& boxes = *sent<Boxes>(1, &s.extra);
  boxes.passes = passes;
  for (int i = 0; i < 2; ++i) {
    float radius = static_cast<float>(p[i]);
    if (p[3] != 0) radius = box_blur::radius_of_bell(radius, static_cast<int>(passes));
    if (!(radius >= 0 && radius <= box_blur::kMaxRadius)) throw InvalidRecipe{"a blur of that radius"};
    const box_blur::Box box(radius);
    boxes.radius[i] = radius != 0 ? box.radius : -1;
    boxes.whole[i] = box.whole;
    boxes.part[i] = box.part;
    row_.work += s.in.height * s.in.width * passes * (2 * box.radius + 3);
  }
  for (int i = 0; i < 2; ++i) work_in(s, i, s.in.height * s.in.width * s.in.channels);
  alike(s);
}

void Description::check_alike(const Image& other, const Image& from) {
  if (other.map.height != from.map.height || other.map.width != from.map.width ||
      other.map.channels != from.map.channels)
    throw InvalidRecipe{"a mixture of images of different sizes"};
}

void Description::blend(const Image& from, const double* p) {
  const Image other = image(p[0]);
  check_alike(other, from);
  Step& s = step(from);
  Bitmap* bitmap = sent<Bitmap>(1, &s.extra);
  *bitmap = other.map;
  buffers_.refer(&bitmap->data, other.buffer);
  s.number[0] = p[1];
  alike(s);
}

void Description::mix(const Image& from, const double* p) {
  const int64_t count = whole(p[0]);
  if (count < 1 || count % 2 == 0) throw InvalidRecipe{"a mixture that ends early"};
  Step& s = step(from);
  Term* terms = sent<Term>(static_cast<size_t>(count + 1) / 2, &s.extra);
  s.number[0] = static_cast<double>((count + 1) / 2);
  for (int64_t i = -1; i + 1 < count; i += 2, ++terms) {
    const Image other = i < 0 ? from : image(p[1 + i]);
    const Table& t = table(p[i < 0 ? 1 : 2 + i]);
    if (t.item_bytes != 4 || (t.channels != 1 && t.channels != from.map.channels))
      throw InvalidRecipe{"a table of another kind"};
    check_alike(other, from);
    *terms = {other.map, address_of(t.data), t.channels > 1};
    buffers_.refer(&terms->image.data, other.buffer);
  }
  alike(s);
}

// ---- colours ----

void Description::color(const RecordedStep& w, const Image& from) {
  const bool gray = w.op == Op::Luma || w.op == Op::TorchLuma;
  const bool colored = gray || w.op == Op::Saturate || w.op == Op::Hue || w.op == Op::TorchSaturate ||
                       w.op == Op::TorchHue || w.op == Op::Channels;
  if (colored && from.map.channels != 3) throw InvalidRecipe{"a change of colours of other than three channels"};
  Step& s = step(from);
  std::copy_n(w.p, w.count, s.number);
  check_color(w, s);
  make(s, s.in.height, s.in.width, gray ? 1 : s.in.channels);
}

void Description::check_color(const RecordedStep& w, Step& s) {
  switch (w.op) {
    case Op::Luma:
    case Op::Contrast:
    case Op::Saturate:
    case Op::Autocontrast:
    case Op::Equalize:
    case Op::Sharpen:
    case Op::TorchEqualize: return;
    case Op::Hue: byte(w.p[0]); return;
    case Op::TorchHue:
      if (!(std::fabs(w.p[1]) <= 0.5)) throw InvalidRecipe{"a hue that turns by more than half a circle"};
      break;
    case Op::Channels:
      for (int c = 0; c < 3; ++c)
        if (byte(w.p[c]) > 2) throw InvalidRecipe{"a channel that is not there"};
      return;
    case Op::TorchContrast:
      if (!torch_color::can_sum(s.in.height * s.in.width, order_of(w.p + 2)))
        throw InvalidRecipe{"a mean that is not exact"};
      break;
    case Op::TorchSharpen:
      if (s.in.height < 3 || s.in.width < 3) throw InvalidRecipe{"an image without an inside"};
      break;
    case Op::TorchLuma:
    case Op::TorchSaturate:
    case Op::TorchAutocontrast: break;
    default: throw InvalidRecipe{"a step that the GPU has no form for"};
  }
  s.kind = w.p[0] == 1 ? 1 : 2;  // the generation
}

}  // namespace stoker::recipe::gpu
