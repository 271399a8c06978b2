// SPDX-License-Identifier: Apache-2.0
#include "recipe.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "box_blur.hpp"
#include "correlate.hpp"
#include "histogram.hpp"
#include "jpeg.hpp"
#include "recipe_numbers.hpp"
#include "recipe_pixels.hpp"
#include "recipe_store.hpp"
#include "resample.hpp"
#include "torch_color.hpp"
#include "torch_resize.hpp"
#include "torch_warp.hpp"
#include "warp.hpp"
#include "warp_project.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 34;
constexpr size_t kKeptBytes = 64u << 20;  // a larger image's memory is given back after it
constexpr int kTransposes = 7;
constexpr int kMostPasses = 16;

struct Leave {};

class Maker {
 public:
  Maker(Order& order, int64_t index, Bench& bench) : order_(order), source_(order.sources[index]), bench_(bench) {
    const double* numbers = order.numbers.data();
    steps_ = read_steps(numbers + order.starts[index], numbers + order.starts[index + 1]);
    uses_.assign(steps_.size(), 0);
    for (size_t at = 0; at < steps_.size(); ++at) {
      const Written& step = steps_[at];
      if (step.from >= 0 && step.from < static_cast<int64_t>(at)) ++uses_[static_cast<size_t>(step.from)];
      if (step.op == Op::Mix) use_mixed(step.p, step.count);
    }
    for (size_t at = 0; at < steps_.size();) {
      const size_t done = steps_[at].op == Op::Resize ? resize_and_store(at) : 0;
      if (!done) step(steps_[at].op, steps_[at].from, steps_[at].p);
      at += std::max<size_t>(done, 1);
    }
  }

 private:
  View image(int64_t index) const {
    if (index < 0 || index >= static_cast<int64_t>(images_.size())) throw Bad{"a step from an image that is not there"};
    return images_[index];  // a copy: the list grows
  }

  void step(Op op, int64_t from, const double* p) {
    if (op == Op::Decode) return decode(p);
    if (op == Op::Pixels) return pixels(p);
    const View source = image(from);
    switch (op) {
      case Op::Crop: return crop(source, p);
      case Op::Resize: return resize(source, p);
      case Op::Transpose: return transpose(source, p);
      case Op::Affine: return affine(source, p);
      case Op::Pad: return pad(source, p);
      case Op::Map: return map(source, p);
      case Op::Luma: return to_luma(source);
      case Op::Spread: return spread(source);
      case Op::Contrast: return contrast(source, static_cast<float>(p[0]));
      case Op::Saturate: return saturate(source, static_cast<float>(p[0]));
      case Op::Hue: return hue(source, byte(p[0]));
      case Op::Autocontrast: return by_histogram(source, histogram::stretched<int64_t>);
      case Op::Equalize: return by_histogram(source, histogram::equalized_in_steps<int64_t>);
      case Op::Sharpen: return sharpen(source, static_cast<float>(p[0]));
      case Op::Project: return project(source, p);
      case Op::PadEdges: return pad_edges(source, p);
      case Op::Correlate: return correlate(source, p);
      case Op::TorchResize: return torch_resize(source, p);
      case Op::TorchPick: return torch_pick(source, p);
      case Op::TorchLuma:
        return torch_color::gray(generation(p), colored(source), fresh(source.shape[0], source.shape[1], 1));
      case Op::TorchContrast: return torch_contrast(source, generation(p), p[1]);
      case Op::TorchSaturate: return torch_color::saturate(generation(p), colored(source), p[1], alike(source));
      case Op::TorchHue:
        if (!(std::fabs(p[0]) <= 0.5)) throw Bad{"a hue that turns by more than half a circle"};
        return torch_color::hue(colored(source), p[0], alike(source));
      case Op::TorchSharpen: return torch_sharpen(source, generation(p), p[1]);
      case Op::TorchAutocontrast:
        return by_histogram(source, generation(p) == torch_color::Generation::First
                                        ? torch_color::first_autocontrast_table<int64_t>
                                        : torch_color::autocontrast_table<int64_t>);
      case Op::TorchEqualize: return by_histogram(source, histogram::equalized_whole<int64_t>);
      case Op::TorchWarp: return torch_warp(source, p);
      case Op::TorchGrid: return torch_grid(source, p);
      case Op::Channels: return channels(source, p);
      case Op::Blur: return blur(source, p);
      case Op::Mix: return mix(source, p);
      case Op::StorePixels: return store_pixels(source, p);
      case Op::Store: store_image(place(source, p), source); return images_.push_back(source);
      case Op::Patch: patch(p); return images_.push_back(source);
      default: throw Bad{"an unknown step"};
    }
  }

  View fresh(int64_t height, int64_t width, int64_t channels) {
    if (height * width > kMaxBytes / channels) throw Bad{"an image larger than can be addressed"};
    const size_t at = images_.size();
    while (bench_.images.size() <= at) bench_.images.push_back(std::make_unique<Scratch>());
    View v;
    v.rank = 3;
    v.shape[0] = height;
    v.shape[1] = width;
    v.shape[2] = channels;
    v.set_contiguous_strides();
    v.data = bench_.images[at]->get(static_cast<size_t>(v.elements()) + 1);
    images_.push_back(v);
    return v;
  }

  void decode(const double* p) {
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
    const View v = fresh(window.y1 - window.y0, window.x1 - window.x0, channels);
    const auto status = jpeg::decode(source_.data, source_.size, info, window, luma ? jpeg::Format::GRAY : jpeg::Format::ANY,
                                     v.data, v.stride[0], bench_.work[0]);
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
    const View v = fresh(y1 - y0, x1 - x0, channels);
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

  void crop(View v, const double* p) {
    const int64_t x0 = whole(p[0]), y0 = whole(p[1]), x1 = whole(p[2]), y1 = whole(p[3]);
    if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > v.shape[1] || y1 > v.shape[0])
      throw Bad{"a crop that leaves the image"};
    v.data += y0 * v.stride[0] + x0 * v.stride[1];
    v.shape[0] = y1 - y0;
    v.shape[1] = x1 - x0;
    images_.push_back(v);
  }

  struct Resizing {
    resample::Axis vertical, horizontal;
    resample::Order order;
    Resizing(const View& v, const double* p) {
      const int64_t height = side(p[0]), width = side(p[1]), filter = whole(p[6]);
      if (filter < 0 || filter > static_cast<int64_t>(resample::Filter::Hamming)) throw Bad{"an unknown filter"};
      const auto f = static_cast<resample::Filter>(filter);
      vertical = {v.shape[0], height, p[2], p[3], f, true};
      horizontal = {v.shape[1], width, p[4], p[5], f, true};
      order = p[7] != 0 ? resample::Order::HorizontalFirst : resample::Order::Pillow;
    }
  };

  void resize(const View& v, const double* p) {
    const Resizing r(v, p);
    const View one = once(v);
    const View out = fresh(r.vertical.out_size, r.horizontal.out_size, one.shape[2]);
    if (!resample::resample_into(one, r.vertical, r.horizontal, out, bench_.work[0], r.order))
      throw Bad{"a region that is not finite"};
    if (one.shape[2] != v.shape[2]) images_.back() = thrice(out);
  }

  // A gray image in three channels: the same bytes three times.
  static bool is_spread(const View& v) { return v.shape[2] == 3 && v.stride[2] == 0; }
  static View once(View v) {
    if (is_spread(v)) v.shape[2] = 1;
    return v;
  }
  static View thrice(View v) {
    v.shape[2] = 3;
    v.stride[2] = 0;
    return v;
  }

  void transpose(View v, const double* p) {
    const int64_t kind = whole(p[0]);
    if (kind < 0 || kind >= kTransposes) throw Bad{"an unknown transposition"};
    // Of Pillow's methods: mirrored rows, mirrored columns, both axes exchanged at last.
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
    images_.push_back(v);
  }

  void affine(const View& v, const double* p) {
    const View out = fresh(side(p[0]), side(p[1]), v.shape[2]);
    for (int64_t c = 0; c < v.shape[2]; ++c) byte(p[9 + c]);
    if (!warp::affine(v, p + 2, p[8] != 0, p + 9, 1, out, bench_.work[0])) throw Bad{"a matrix that is not finite"};
  }

  void pad(const View& v, const double* p) {
    const int64_t left = whole(p[0]), top = whole(p[1]), height = side(p[2]), width = side(p[3]);
    if (left < 0 || top < 0 || left + v.shape[1] > width || top + v.shape[0] > height)
      throw Bad{"an image that does not fit into its frame"};
    uint8_t fill[3];
    for (int i = 0; i < 3; ++i) fill[i] = byte(p[4 + i]);
    recipe::pad(v, left, top, fill, fresh(height, width, v.shape[2]));
  }

  template <class F>
  void each(const View& v, const View& out, F f) {
    for (int64_t y = 0; y < v.shape[0]; ++y)
      for (int64_t x = 0; x < v.shape[1]; ++x)
        f(v.data + y * v.stride[0] + x * v.stride[1], out.data + y * out.stride[0] + x * out.stride[1]);
  }

  const Table& table(double index) const {
    const int64_t i = whole(index);
    if (i < 0 || i >= static_cast<int64_t>(order_.tables.size())) throw Bad{"a table that is not there"};
    return order_.tables[i];
  }

  void map(const View& v, const double* p) {
    const Table& t = table(p[0]);
    if (t.item_bytes != 1 || (t.channels != 1 && t.channels != v.shape[2])) throw Bad{"a table of another kind"};
    mapped(v, t.data, t.channels > 1 ? 256 : 0);
  }

  void mapped(const View& v, const uint8_t* values, int64_t per_channel) {
    recipe::map(v, values, per_channel, alike(v));
  }

  void to_luma(const View& v) {
    if (v.shape[2] != 3) throw Bad{"a luma of other than three channels"};
    const View out = fresh(v.shape[0], v.shape[1], 1);
    each(v, out, [&](const uint8_t* from, uint8_t* to) { *to = luma(from, v.stride[2]); });
  }

  void spread(const View& v) {
    if (v.shape[2] != 1) throw Bad{"other than one channel to spread"};
    images_.push_back(thrice(v));
  }

  void contrast(const View& v, float factor) {
    int64_t sum = 0;
    const View none = v;
    each(v, none, [&](const uint8_t* from, uint8_t*) { sum += v.shape[2] == 3 ? luma(from, v.stride[2]) : *from; });
    const int mean = mean_of(sum, v.shape[0] * v.shape[1]);
    uint8_t values[256];
    for (int i = 0; i < 256; ++i) values[i] = blend(mean, i, factor);
    mapped(v, values, 0);
  }

  void saturate(const View& v, float factor) {
    if (v.shape[2] != 3) throw Bad{"a saturation of other than three channels"};
    recipe::saturate(v, factor, alike(v));
  }

  void hue(const View& v, uint8_t shift) {
    if (v.shape[2] != 3) throw Bad{"a hue of other than three channels"};
    const View out = fresh(v.shape[0], v.shape[1], 3);
    each(v, out, [&](const uint8_t* from, uint8_t* to) {
      const uint8_t rgb[3] = {from[0], from[v.stride[2]], from[2 * v.stride[2]]};
      uint8_t hsv[3];
      hsv_of_rgb(rgb, hsv);
      hsv[0] = static_cast<uint8_t>(hsv[0] + shift);
      rgb_of_hsv(hsv, to);
    });
  }

  void by_histogram(const View& v, void (*table_of)(const int64_t*, uint8_t*)) {
    uint8_t values[3 * 256];
    int64_t counts[3 * 256] = {};
    count_values(v, counts);
    for (int64_t c = 0; c < v.shape[2]; ++c) table_of(counts + 256 * c, values + 256 * c);
    mapped(v, values, 256);
  }

  // Blended with itself smoothed; the outermost pixels are not smoothed.
  void sharpen(const View& source, float factor) {
    const View v = packed(source);
    const View out = fresh(v.shape[0], v.shape[1], v.shape[2]);
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

  // The image with its pixels side by side in a row; a copy if they are not.
  View packed(const View& v) {
    if (v.stride[2] == 1 && v.stride[1] == v.shape[2]) return v;
    View out = v;
    out.set_contiguous_strides();
    out.data = bench_.work[1].get(static_cast<size_t>(out.elements()) + 1);
    recipe::copy(v, out);
    return out;
  }

  View alike(const View& v) { return fresh(v.shape[0], v.shape[1], v.shape[2]); }

  static const View& colored(const View& v) {
    if (v.shape[2] != 3) throw Bad{"a change of colours of other than three channels"};
    return v;
  }

  void project(const View& v, const double* p) {
    const View out = fresh(side(p[0]), side(p[1]), v.shape[2]);
    const int64_t sampling = whole(p[11]);
    if (sampling < 0 || sampling > 2) throw Bad{"an unknown interpolation"};
    const uint8_t fill[3] = {byte(p[12]), byte(p[13]), byte(p[14])};
    if (!warp::project(v, p + 2, p[10] != 0, static_cast<warp::Sampling>(sampling), fill, out))
      throw Bad{"a matrix that is not finite"};
  }

  void pad_edges(const View& v, const double* p) {
    const int64_t left = whole(p[0]), top = whole(p[1]), kind = whole(p[4]);
    if (kind < 0 || kind >= static_cast<int64_t>(Border::Constant)) throw Bad{"an unknown border"};
    const auto border = static_cast<Border>(kind);
    const View out = fresh(side(p[2]), side(p[3]), v.shape[2]);
    recipe::pad_edges(v, left, top, border, out);
  }

  void correlate(const View& v, const double* p) {
    const int64_t count = whole(p[0]);
    const int64_t height = count > 2 ? side(p[1]) : 0, width = count > 2 ? side(p[2]) : 0;
    if (count < 3 || height > count || width > count || height * width != count - 2) throw Bad{"a filter of another size"};
    auto* weights = reinterpret_cast<float*>(bench_.work[1].get(static_cast<size_t>(count) * sizeof(float)));
    for (int64_t i = 0; i < count - 2; ++i) weights[i] = static_cast<float>(p[3 + i]);
    correlate::Window window{weights, height, width, height / 2, width / 2};
    window.fused = true;
    if (!correlate::correlate(v, window, alike(v), bench_.work[0])) throw Bad{"an image that cannot be filtered"};
  }

  void blur(const View& v, const double* p) {
    const int64_t passes = whole(p[2]);
    if (passes < 1 || passes > kMostPasses) throw Bad{"a blur without passes, or with too many"};
    float radii[2];
    for (int i = 0; i < 2; ++i) {
      radii[i] = static_cast<float>(p[i]);
      if (p[3] != 0) radii[i] = box_blur::radius_of_bell(radii[i], static_cast<int>(passes));
    }
    const View from = packed(v), out = alike(v);
    if (!box_blur::blur(from, radii[0], radii[1], static_cast<int>(passes), out, bench_.work[0]))
      throw Bad{"a blur of that radius"};
  }

  void torch_resize(const View& v, const double* p) {
    const int64_t filter = whole(p[2]);
    if (filter < 0 || filter > 2) throw Bad{"an unknown filter"};
    const View out = fresh(side(p[0]), side(p[1]), v.shape[2]);
    if (!torch_resize::resize(v, static_cast<torch_resize::Filter>(filter), out, bench_.work[0]))
      throw Bad{"an image that cannot be resized"};
  }

  void torch_pick(const View& v, const double* p) {
    if (!torch_resize::pick(v, p[2] != 0, fresh(side(p[0]), side(p[1]), v.shape[2]), bench_.work[0]))
      throw Bad{"an image that cannot be resized"};
  }

  static torch_color::Generation generation(const double* p) {
    return p[0] == 1 ? torch_color::Generation::First : torch_color::Generation::Second;
  }

  void torch_contrast(const View& v, torch_color::Generation generation, double factor) {
    if (v.shape[0] * v.shape[1] > torch_color::kExactPixels) throw Bad{"a mean that is not exact"};
    uint8_t values[256];
    torch_color::contrast_table(generation, v, factor, values);
    mapped(v, values, 0);
  }

  void torch_sharpen(const View& v, torch_color::Generation generation, double factor) {
    if (v.shape[0] < 3 || v.shape[1] < 3) throw Bad{"an image without an inside"};
    if (!torch_color::sharpen(generation, v, factor, alike(v), bench_.work[0], bench_.work[1])) throw Bad{"an image that cannot be filtered"};
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
    const View source = image(steps_[at].from);
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
    if (!resample::resample(once(source), r.vertical, r.horizontal, sink, bench_.work[0], r.order))
      throw Bad{"a region that is not finite"};
    images_.resize(last + 1);  // nobody asks for them
    return last - at + 1;
  }

  void channels(const View& v, const double* p) {
    const View out = alike(colored(v));
    int64_t at[3];
    for (int c = 0; c < 3; ++c) at[c] = whole(p[c]);
    for (const int64_t c : at)
      if (c < 0 || c > 2) throw Bad{"a channel that is not there"};
    each(v, out, [&](const uint8_t* from, uint8_t* to) {
      for (int64_t c = 0; c < 3; ++c) to[c] = from[at[c] * v.stride[2]];
    });
  }

  // The images that a mixture takes are wanted by more than the steps that name them.
  void use_mixed(const double* p, int64_t count) {
    for (int64_t i = 2; i + 1 < count; i += 2) {
      const int64_t image = whole(p[i]);
      if (image >= 0 && image < static_cast<int64_t>(uses_.size())) uses_[static_cast<size_t>(image)] += 2;
    }
  }

  void mix(const View& v, const double* p) {
    const int64_t count = whole(p[0]);
    if (count < 1 || count % 2 == 0) throw Bad{"a mixture that ends early"};
    const View out = alike(v);
    const size_t n = static_cast<size_t>(out.elements());
    auto* sums = reinterpret_cast<float*>(bench_.work[1].get(n * sizeof(float)));
    for (int64_t i = -1; i + 1 < count; i += 2) {
      const View image_i = i < 0 ? v : image(whole(p[1 + i]));
      const Table& t = table(p[i < 0 ? 1 : 2 + i]);
      if (t.item_bytes != 4 || (t.channels != 1 && t.channels != v.shape[2])) throw Bad{"a table of another kind"};
      for (int d = 0; d < 3; ++d)
        if (image_i.shape[d] != v.shape[d]) throw Bad{"a mixture of images of different sizes"};
      add_mapped(image_i, reinterpret_cast<const float*>(t.data), t.channels > 1 ? 256 : 0, i < 0, sums);
    }
    for (size_t i = 0; i < n; ++i) out.data[i] = static_cast<uint8_t>(sums[i] > 0.0f ? (sums[i] < 255.0f ? sums[i] : 255.0f) : 0.0f);
  }

  static void add_mapped(const View& v, const float* values, int64_t per_channel, bool first, float* sums) {
    for (int64_t y = 0; y < v.shape[0]; ++y)
      for (int64_t x = 0; x < v.shape[1]; ++x)
        for (int64_t c = 0; c < v.shape[2]; ++c, ++sums) {
          const float term = values[c * per_channel + v.data[y * v.stride[0] + x * v.stride[1] + c * v.stride[2]]];
          *sums = first ? term : *sums + term;
        }
  }

  void torch_warp(const View& v, const double* p) {
    torch_warp::Grid grid{};
    for (int i = 0; i < 8; ++i) grid.m[i] = static_cast<float>(p[2 + i]);
    grid.projective = p[10] != 0;
    sample(v, grid, p[11] != 0, p + 12, fresh(side(p[0]), side(p[1]), v.shape[2]));
  }

  void torch_grid(const View& v, const double* p) {
    const View out = fresh(side(p[0]), side(p[1]), v.shape[2]);
    const Table& bytes = table(p[7]);
    if (int64_t{bytes.channels} * bytes.item_bytes * 256 < out.shape[0] * out.shape[1] * 8 ||
        reinterpret_cast<uintptr_t>(bytes.data) % sizeof(float))
      throw Bad{"a grid of another size"};
    torch_warp::Grid grid{};
    grid.given = reinterpret_cast<const float*>(bytes.data);
    sample(v, grid, p[2] != 0, p + 3, out);
  }

  static void sample(const View& v, const torch_warp::Grid& grid, bool linear, const double* fill, const View& out) {
    torch_warp::Fill outside{fill[0] != 0, {}};
    for (int i = 0; i < 3; ++i) outside.value[i] = static_cast<float>(fill[1 + i]);
    if (!torch_warp::sample(v, grid, linear, outside, out)) throw Bad{"an image that cannot be sampled"};
  }

  void store_pixels(const View& v, const double* p) {
    View out = v;
    out.data = place_bytes(p, v.elements(), 1);
    out.set_contiguous_strides();
    recipe::copy(v, out);
    images_.push_back(v);
  }

  // Where `count` elements of `item` bytes go.
  uint8_t* place_bytes(const double* p, int64_t count, int64_t item) const {
    const int64_t output = whole(p[0]), first = whole(p[1]);
    if (output < 0 || output >= static_cast<int64_t>(order_.outputs.size())) throw Bad{"an output that is not there"};
    const Output& out = order_.outputs[output];
    if (first < 0 || first % item || count * item > static_cast<int64_t>(out.size) - first)
      throw Bad{"an image that does not fit into its output"};
    return out.data + first;
  }

  Planes place(const View& v, const double* p) {
    const Table* t = whole(p[2]) < 0 ? nullptr : &table(p[2]);
    if (t && t->channels != 1 && t->channels != v.shape[2]) throw Bad{"a table of another kind"};
    const int64_t item = t ? t->item_bytes : 1;
    return {place_bytes(p, v.elements(), item), v.shape[0], v.shape[1], v.shape[2], t ? t->data : nullptr, item,
            t && t->channels > 1, false, false, false};
  }

  void patch(const double* p) {
    const Patch patch = patch_of(p);
    const int64_t output = whole(p[0]), first = whole(p[1]), item = patch.item;
    const Table& values = table(p[12]);
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
  Bench& bench_;
  std::vector<Written> steps_;
  std::vector<int> uses_;  // how many steps take each one's image
  std::vector<View> images_;
};

}  // namespace

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
}

}  // namespace stoker::recipe
