// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/recipe_described.hpp"

#include "gpu_kernels/recipe_description.hpp"

namespace stoker::recipe::gpu {

Description::Description(const std::vector<RecordedStep>& steps, const View& image, const std::vector<Table>& tables,
                         const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory)
    : steps_(steps), tables_(tables), outputs_(outputs), memory_(memory), last_(last_uses(steps)) {
  if (steps.empty() || (steps[0].op != Op::Decode && steps[0].op != Op::Pixels))
    throw InvalidRecipe{"a recipe that does not begin with its image"};
  steps_out_ = sent<Step>(steps.size(), &row_.steps);
  image.rank == 3 ? begin(image) : begin(image, steps[0].p);
  for (now_ = 1; now_ < steps.size(); ++now_) add(steps[now_]);
  buffers_.settle(memory);
}

// ---- memory ----

Image Description::image(double number) const {
  const int64_t i = whole(number);
  if (i < 0 || i >= static_cast<int64_t>(images_.size())) throw InvalidRecipe{"a step from an image that is not there"};
  return images_[static_cast<size_t>(i)];
}

Step& Description::step(const Image& from) {
  Step& s = steps_out_[row_.count++];
  s.op = steps_[now_].op;
  s.in = from.map;
  buffers_.refer(&s.in.data, from.buffer);
  row_.work += from.map.height * from.map.width;
  return s;
}

void Description::make(Step& s, int64_t height, int64_t width, int64_t channels) {
  Image out{{nullptr, height, width, channels, width * channels, channels, 1}, kElsewhere};
  out.buffer = buffers_.take(height * width * channels, now_, last_[now_]);
  s.out = out.map;
  buffers_.refer(&s.out.data, out.buffer);
  images_.push_back(out);
}

void Description::alike(Step& s) { make(s, s.in.height, s.in.width, s.in.channels); }

void Description::work_in(Step& s, int buffer, int64_t bytes) {
  buffers_.refer(&s.scratch[buffer], buffers_.take(bytes, now_, now_));
}

const Table& Description::table(double number) const {
  const int64_t i = whole(number);
  if (i < 0 || i >= static_cast<int64_t>(tables_.size())) throw InvalidRecipe{"a table that is not there"};
  return tables_[static_cast<size_t>(i)];
}

void Description::moved(Image& image, int64_t bytes) {
  image.map.data = reinterpret_cast<uint8_t*>(address_of(image.map.data) + static_cast<uint64_t>(bytes));
}

// ---- the first step ----

void Description::begin(const View& v) {
  if (v.dtype != DType::U8 || v.elements() == 0 || (v.shape[2] != 1 && v.shape[2] != 3) ||
      v.elements() >= kMaxImageBytes)
    throw InvalidRecipe{"neither one nor three channels of bytes"};
  int64_t span = 0;
  for (int i = 0; i < 3; ++i) span += (v.shape[i] - 1) * std::abs(v.stride[i]);
  if (span >= kMaxImageBytes) throw InvalidRecipe{"an image that is spread over 2 GiB or more"};
  images_.push_back({bitmap_of(v), kElsewhere});
}

void Description::begin(const View& v, const double* p) {
  if (steps_[0].op != Op::Pixels || v.rank != 1 || v.dtype != DType::U8)
    throw InvalidRecipe{"bytes that are not an image's"};
  const int64_t height = side(p[0]), width = side(p[1]), channels = whole(p[2]);
  if (channels != 1 && channels != 3) throw InvalidRecipe{"neither one nor three channels"};
  const int64_t between = p[3] == 2 ? 4 : channels;  // bytes from pixel to pixel
  if (height * width > kMaxImageBytes / between || height * width * between != v.shape[0])
    throw InvalidRecipe{"bytes that are not the image's"};
  const int64_t x0 = whole(p[4]), y0 = whole(p[5]), x1 = whole(p[6]), y1 = whole(p[7]);
  if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > width || y1 > height)
    throw InvalidRecipe{"a window that leaves the image"};
  const bool planar = p[3] == 1;
  const int64_t pixel = planar ? 1 : between, row = width * pixel, channel = planar ? height * width : 1;
  images_.push_back({{v.data, y1 - y0, x1 - x0, channels, row, pixel, channel}, kElsewhere});
  moved(images_[0], y0 * row + x0 * pixel);
}

// ---- steps ----

void Description::add(const RecordedStep& w) {
  if (!kOnGpu[static_cast<size_t>(w.op)]) throw InvalidRecipe{"a step that the GPU has no form for"};
  const Image from = image(static_cast<double>(w.from));
  const double* p = w.p;
  switch (w.op) {
    case Op::Crop: return crop(from, p);
    case Op::Transpose: return transpose(from, p);
    case Op::Spread: return spread(from);
    case Op::Store: return store(from, p);
    case Op::Patch: return patch(from, p);
    case Op::Resize:
    case Op::TorchResize:
    case Op::TorchResizeFloats:
    case Op::TorchPick: return resizing(w.op, from, p);
    case Op::Affine:
    case Op::Project:
    case Op::TorchWarp:
    case Op::TorchGrid: return warp(w.op, from, p);
    case Op::Pad:
    case Op::PadEdges: return pad(from, p, w.op == Op::Pad);
    case Op::Map: return map(from, p);
    case Op::Correlate: return correlate(from, p);
    case Op::Blur: return blur(from, p);
    case Op::Mix: return mix(from, p);
    case Op::Blend: return blend(from, p);
    default: return color(w, from);
  }
}

// ---- outputs ----

uint8_t* Description::output(const double* p, int64_t bytes, int64_t item) const {
  const int64_t output = whole(p[0]), first = whole(p[1]);
  if (output < 0 || output >= static_cast<int64_t>(outputs_.size())) throw InvalidRecipe{"an output that is not there"};
  const View& out = *outputs_[static_cast<size_t>(output)];
  const uint64_t address = address_of(out.data) + static_cast<uint64_t>(first);
  if (first < 0 || bytes > out.elements() - first || address % static_cast<uint64_t>(item))
    throw InvalidRecipe{"an image that does not fit into its output"};
  return reinterpret_cast<uint8_t*>(address);
}

void Description::store(const Image& from, const double* p) {
  const Table* t = whole(p[2]) < 0 ? nullptr : &table(p[2]);
  if (t && t->channels != 1 && t->channels != from.map.channels) throw InvalidRecipe{"a table of another kind"};
  Step& s = step(from);
  s.kind = t ? t->item_bytes : 1;
  s.extra = t ? address_of(t->data) : 0;
  s.number[0] = t && t->channels > 1;
  s.out.data = output(p, from.map.height * from.map.width * from.map.channels * s.kind, s.kind);
  images_.push_back(from);
}

void Description::patch(const Image& from, const double* p) {
  const Patch patch = patch_of(p);
  const Table& values = table(p[12]);
  if (int64_t{values.channels} * values.item_bytes * 256 < patch.values() * patch.item ||
      address_of(values.data) % static_cast<uint64_t>(patch.item))
    throw InvalidRecipe{"a patch of another size"};
  Step& s = step(from);
  s.kind = static_cast<int32_t>(patch.item);
  s.extra = address_of(values.data);
  std::copy_n(p + 3, 9, s.number);
  s.out.data = output(p, patch.bytes(), patch.item);
  images_.push_back(from);
}

Row describe(const std::vector<RecordedStep>& steps, const View& image, const std::vector<Table>& tables,
             const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory) {
  return Description(steps, image, tables, outputs, memory).row();
}

}  // namespace stoker::recipe::gpu
