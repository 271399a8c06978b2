// SPDX-License-Identifier: Apache-2.0
#include "recipe.hpp"

#include <algorithm>
#include <cstring>

#include "jpeg.hpp"
#include "recipe_images.hpp"
#include "recipe_pixels.hpp"
#include "recipe_store.hpp"
#include "told_file.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 34;
constexpr size_t kKeptBytes = 64u << 20;  // a larger image's memory is given back after it

// An image of bytes without gaps, whose memory is still to be named.
View side_by_side(int64_t height, int64_t width, int64_t channels) {
  View v;
  v.rank = 3;
  v.shape[0] = height;
  v.shape[1] = width;
  v.shape[2] = channels;
  v.set_contiguous_strides();
  return v;
}

struct Leave {};

class Maker {
 public:
  Maker(Order& order, int64_t index, Bench& bench)
      : order_(order), source_(bytes_of(order.sources[index], bench)), images_(order, bench) {
    const double* numbers = order.numbers.data();
    steps_ = read_steps(numbers + order.starts[index], numbers + order.starts[index + 1]);
    uses_.assign(steps_.size(), 0);
    for (size_t at = 0; at < steps_.size(); ++at) {
      const Written& step = steps_[at];
      if (step.from >= 0 && step.from < static_cast<int64_t>(at)) ++uses_[static_cast<size_t>(step.from)];
      each_other_image(step, [&](double number) { use_mixed(number); });
    }
    for (size_t at = 0; at < steps_.size();) {
      const size_t done = several(at);
      if (!done) step(steps_[at].op, steps_[at].from, steps_[at].p);
      at += std::max<size_t>(done, 1);
    }
  }

 private:
  static Source bytes_of(const Source& source, Bench& bench) {
    if (!source.told) return source;
    View file;
    std::string error;
    if (!read_told(source.data, source.size, bench.file, file, error)) throw Leave{};
    return {file.data, static_cast<size_t>(file.shape[0])};
  }

  // Steps that are done together, from this one on; 0 if there are none.
  size_t several(size_t at) {
    if (steps_[at].op == Op::Resize) return resize_and_store(at);
    if (steps_.size() != 2 || steps_[0].op != Op::Decode || steps_[1].op != Op::StorePixels || steps_[1].from != 0)
      return 0;
    decode(steps_[0].p, steps_[1].p);  // straight to where it is wanted
    images_.skip_to(2);
    return 2;
  }

  void step(Op op, int64_t from, const double* p) {
    if (op == Op::Decode) return decode(p);
    if (op == Op::Pixels) return pixels(p);
    const View source = images_.at(from);
    switch (op) {
      case Op::StorePixels: return store_pixels(source, p);
      case Op::Store: is_floats(source) ? store_floats(source, p) : store_image(place(source, p), source); return images_.push(source);
      case Op::Patch: patch(p); return images_.push(source);
      default:
        if (is_floats(source)) {
          if (!make_floats(images_, op, source, p)) throw Bad{"a step that does not take floats"};
        } else if (!make_shape(images_, op, source, p) && !make_values(images_, op, source, p)) throw Bad{"an unknown step"};
    }
  }

  // To `store`, if that is what follows.
  void decode(const double* p, const double* store = nullptr) {
    const int64_t channels = whole(p[0]);
    if (channels != 1 && channels != 3) throw Bad{"neither one nor three channels"};
    jpeg::Info info;
    if (!jpeg::parse(source_.data, source_.size, info)) throw Leave{};
    const auto at = [&](int i) { return static_cast<int32_t>(std::clamp<int64_t>(whole(p[i]), 0, kMaxSide)); };
    const jpeg::Window window{at(1), at(2), at(3), at(4)};
    if (window.x0 >= window.x1 || window.y0 >= window.y1 || window.x1 > info.width || window.y1 > info.height)
      throw Leave{};  // the file is not the one that was recorded
    const bool gray = info.model == jpeg::Model::Gray;
    const bool luma = channels == 1 && info.model == jpeg::Model::YCbCr;  // as it is in the file
    if (gray != (channels == 1) && !luma) throw Leave{};
    const int64_t height = window.y1 - window.y0, width = window.x1 - window.x0;
    const View v = store ? stored(height, width, channels, store) : images_.fresh(height, width, channels);
    const auto status = jpeg::decode(source_.data, source_.size, info, window, luma ? jpeg::Format::GRAY : jpeg::Format::ANY,
                                     v.data, v.stride[0], images_.work(0));
    // Damaged data: Pillow decides what is an error and what only a warning.
    if (status != jpeg::Status::Ok) throw Leave{};
  }

  // Copied, since other steps may read a few bytes behind an image.
  void pixels(const double* p) {
    const int64_t height = side(p[0]), width = side(p[1]), channels = whole(p[2]);
    if (channels != 1 && channels != 3) throw Bad{"neither one nor three channels"};
    if (height * width > kMaxBytes / channels || height * width * channels != static_cast<int64_t>(source_.size))
      throw Bad{"bytes that are not the image's"};
    const bool planar = p[3] != 0;
    const int64_t x0 = whole(p[4]), y0 = whole(p[5]), x1 = whole(p[6]), y1 = whole(p[7]);
    if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > width || y1 > height)
      throw Bad{"a window that leaves the image"};
    const View v = images_.fresh(y1 - y0, x1 - x0, channels);
    for (int64_t y = y0; y < y1; ++y) {
      uint8_t* to = v.data + (y - y0) * v.stride[0];
      if (!planar || channels == 1) {
        std::memcpy(to, source_.data + (y * width + x0) * channels, static_cast<size_t>((x1 - x0) * channels));
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        const uint8_t* from = source_.data + (c * height + y) * width;
        for (int64_t x = x0; x < x1; ++x) to[(x - x0) * channels + c] = from[x];
      }
    }
  }

  // What is stored once, right after it was resized and mirrored, goes there row by row, out of the cache.
  // Returns how many steps were done; 0 if they are others.
  size_t resize_and_store(size_t at) {
    bool mirror[2] = {false, false};
    size_t last = at + 1;
    for (; last < steps_.size() && uses_[last - 1] == 1 && steps_[last].from == static_cast<int64_t>(last) - 1; ++last) {
      const Written& s = steps_[last];
      const double kind = s.op == Op::Transpose ? s.p[0] : -1;
      if (kind != 0 && kind != 1 && kind != 3) break;  // rows, columns, both
      mirror[0] ^= kind != 1;
      mirror[1] ^= kind != 0;
    }
    if (last >= steps_.size() || steps_[last].op != Op::Store || uses_[last - 1] != 1 ||
        steps_[last].from != static_cast<int64_t>(last) - 1)
      return 0;
    const View source = images_.at(steps_[at].from);
    if (is_floats(source)) return 0;
    View out = source;  // but for its memory
    out.shape[0] = side(steps_[at].p[0]);
    out.shape[1] = side(steps_[at].p[1]);
    Planes planes = place(out, steps_[last].p);
    planes.mirror_x = mirror[0];
    planes.mirror_y = mirror[1];
    planes.spread = is_spread(source);
    const resample::Sink sink{[](void* to, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
                                store_rows(*static_cast<const Planes*>(to), y0, y1, pixels, pitch);
                              },
                              &planes};
    const Resizing r(source, steps_[at].p);
    if (!resample::resample(once(source), r.vertical, r.horizontal, sink, images_.work(0), r.order))
      throw Bad{"a region that is not finite"};
    images_.skip_to(last + 1);  // nobody asks for them
    return last - at + 1;
  }

  // The images that a mixture takes are wanted by more than the steps that name them.
  void use_mixed(double number) {
    const int64_t image = whole(number);
    if (image >= 0 && image < static_cast<int64_t>(uses_.size())) uses_[static_cast<size_t>(image)] += 2;
  }

  void store_pixels(const View& v, const double* p) {
    if (is_floats(v)) throw Bad{"floats that are stored as bytes"};
    recipe::copy(v, stored(v.shape[0], v.shape[1], v.shape[2], p));
    images_.push(v);
  }

  // An image's place in an output, as bytes side by side.
  View stored(int64_t height, int64_t width, int64_t channels, const double* p) const {
    View out = side_by_side(height, width, channels);
    out.data = images_.place(p, out.elements(), 1);
    return out;
  }

  void store_floats(const View& v, const double* p) {
    if (whole(p[2]) >= 0) throw Bad{"a table of another kind"};
    recipe::store_floats(v, reinterpret_cast<float*>(images_.place(p, v.elements(), sizeof(float))));
  }

  Planes place(const View& v, const double* p) {
    const Table* t = whole(p[2]) < 0 ? nullptr : &images_.table(p[2]);
    if (t && t->channels != 1 && t->channels != v.shape[2]) throw Bad{"a table of another kind"};
    const int64_t item = t ? t->item_bytes : 1;
    return {images_.place(p, v.elements(), item), v.shape[0], v.shape[1], v.shape[2], t ? t->data : nullptr, item,
            t && t->channels > 1, false, false, false};
  }

  void patch(const double* p) {
    const Patch patch = patch_of(p);
    const int64_t output = whole(p[0]), first = whole(p[1]), item = patch.item;
    const Table& values = images_.table(p[12]);
    if (output < 0 || output >= static_cast<int64_t>(order_.outputs.size())) throw Bad{"an output that is not there"};
    const Output& out = order_.outputs[output];
    if (first < 0 || patch.bytes() > static_cast<int64_t>(out.size) - first) throw Bad{"a patch outside of its output"};
    if (int64_t{values.channels} * values.item_bytes * 256 < patch.values() * item) throw Bad{"a patch of another size"};
    fence();  // the pixels below it may still be on their way past the caches
    const uint8_t* from = values.data;
    for (int64_t c = patch.c0; c < patch.c1; ++c)
      for (int64_t y = patch.y0; y < patch.y1; ++y)
        for (int64_t x = patch.x0; x < patch.x1; ++x, from += patch.one ? 0 : item)
          std::memcpy(out.data + first + ((c * patch.height + y) * patch.width + x) * item, from, static_cast<size_t>(item));
  }

  Order& order_;
  const Source source_;
  Images images_;
  std::vector<Written> steps_;
  std::vector<int> uses_;  // how many steps take each one's image
};

}  // namespace

View Images::at(int64_t index) const {
  if (index < 0 || index >= static_cast<int64_t>(images_.size())) throw Bad{"a step from an image that is not there"};
  return images_[static_cast<size_t>(index)];
}

View Images::fresh(int64_t height, int64_t width, int64_t channels) {
  if (height * width > kMaxBytes / channels) throw Bad{"an image larger than can be addressed"};
  const size_t at = images_.size();
  while (bench_.images.size() <= at) bench_.images.push_back(std::make_unique<Scratch>());
  View v = side_by_side(height, width, channels);
  v.data = bench_.images[at]->get(static_cast<size_t>(v.elements()) + 1);
  images_.push_back(v);
  return v;
}

View Images::fresh_floats(int64_t height, int64_t width, int64_t channels) {
  if (height * width > kMaxBytes / channels / static_cast<int64_t>(sizeof(float))) throw Bad{"an image larger than can be addressed"};
  View v = fresh(height, width * static_cast<int64_t>(sizeof(float)), channels);  // as many bytes
  v.shape[1] = width;
  v.dtype = DType::F32;
  v.set_contiguous_strides();
  replace_last(v);
  return v;
}

View Images::packed(const View& v) {
  if (v.stride[2] == 1 && v.stride[1] == v.shape[2]) return v;
  View out = v;
  out.set_contiguous_strides();
  out.data = bench_.work[1].get(static_cast<size_t>(out.elements()) + 1);
  recipe::copy(v, out);
  return out;
}

const Table& Images::table(double index) const {
  const int64_t i = whole(index);
  if (i < 0 || i >= static_cast<int64_t>(order_.tables.size())) throw Bad{"a table that is not there"};
  return order_.tables[i];
}

uint8_t* Images::place(const double* p, int64_t count, int64_t item) const {
  const int64_t output = whole(p[0]), first = whole(p[1]);
  if (output < 0 || output >= static_cast<int64_t>(order_.outputs.size())) throw Bad{"an output that is not there"};
  const Output& out = order_.outputs[output];
  if (first < 0 || first % item || count * item > static_cast<int64_t>(out.size) - first)
    throw Bad{"an image that does not fit into its output"};
  return out.data + first;
}

void make(Order& order, int64_t index, Bench& bench) {
  try {
    Maker(order, index, bench);
    fence();
    order.status[index] = Status::Done;
  } catch (const Leave&) {
    order.status[index] = Status::Left;
  } catch (const Bad& bad) {
    order.why[index] = bad.why;
    order.status[index] = Status::Invalid;
  } catch (const std::bad_alloc&) {
    order.why[index] = "not enough memory";
    order.status[index] = Status::Invalid;
  }
  for (std::unique_ptr<Scratch>& image : bench.images)
    if (image->capacity() > kKeptBytes) image = std::make_unique<Scratch>();
  for (Scratch& scratch : bench.work)
    if (scratch.capacity() > kKeptBytes) scratch = Scratch();
  if (bench.file.capacity() > kKeptBytes) bench.file = Scratch();
}

}  // namespace stoker::recipe
