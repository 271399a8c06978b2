// SPDX-License-Identifier: Apache-2.0
#include "recipe_described.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "border.hpp"
#include "box_blur.hpp"
#include "resample.hpp"
#include "torch_color.hpp"
#include "torch_resize_taps.hpp"
#include "warp.hpp"

namespace stoker::recipe::gpu {

namespace {

constexpr int64_t kMaxImageBytes = int64_t{1} << 31;
constexpr int64_t kMostPasses = 16;
constexpr int kTransposes = 7;
constexpr int kElsewhere = -1;  // an image that is in none of the row's buffers

// Where an image is: `map.data` counts from the buffer's begin.
struct Image {
  Bitmap map;
  int buffer;
};

bool looks_only(Op op) { return op == Op::Crop || op == Op::Transpose || op == Op::Spread || op == Op::Store || op == Op::Patch; }

// After which step nobody needs an image any more; of those that only look at others, theirs.
std::vector<size_t> last_uses(const std::vector<Written>& steps) {
  std::vector<size_t> shown(steps.size()), last(steps.size());
  const auto use = [&](double number, size_t at) {
    const int64_t image = whole(number);
    if (image < 0 || image >= static_cast<int64_t>(at)) throw Bad{"a step from an image that is not there"};
    last[shown[static_cast<size_t>(image)]] = at;
    return shown[static_cast<size_t>(image)];
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    shown[i] = last[i] = i;
    if (i == 0) continue;
    const size_t from = use(static_cast<double>(steps[i].from), i);
    if (looks_only(steps[i].op)) shown[i] = from;
    if (steps[i].op == Op::Mix)
      for (int64_t k = 2; k + 1 < steps[i].count; k += 2) use(steps[i].p[k], i);
  }
  return last;
}

// Device memory of a row: buffers that images take when those before have let go of them.
class Buffers {
 public:
  int take(int64_t bytes, size_t now, size_t until) {
    if (bytes >= kMaxImageBytes) throw Bad{"an image of 2 GiB or more, which the GPU has no form for"};
    int found = -1;
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].until < now && (found < 0 || all_[i].bytes > all_[static_cast<size_t>(found)].bytes)) found = static_cast<int>(i);
    if (found < 0) {
      found = static_cast<int>(all_.size());
      all_.push_back({});
    }
    Buffer& b = all_[static_cast<size_t>(found)];
    b.bytes = std::max(b.bytes, bytes);
    b.until = until;
    return found;
  }

  // What has been written as an offset into a buffer becomes an address.
  void refer(void* address, int buffer) {
    if (buffer != kElsewhere) references_.push_back({address, buffer});
  }

  void settle(stoker::gpu::RowMemory& memory) {
    uint64_t size = 0;
    for (Buffer& b : all_) {
      b.at = size;
      size += (static_cast<uint64_t>(b.bytes) + 255) / 256 * 256;
    }
    const stoker::gpu::Address base = size ? memory.device_room(size) : 0;
    for (const Reference& r : references_) {
      uint64_t address;
      std::memcpy(&address, r.address, sizeof address);
      address += base + all_[static_cast<size_t>(r.buffer)].at;
      std::memcpy(r.address, &address, sizeof address);
    }
  }

 private:
  struct Buffer {
    int64_t bytes = 0;
    size_t until = 0;
    uint64_t at = 0;
  };
  struct Reference {
    void* address;
    int buffer;
  };
  std::vector<Buffer> all_;
  std::vector<Reference> references_;
};

class Description {
 public:
  Description(const std::vector<Written>& steps, const View& image, const std::vector<Table>& tables,
              const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory)
      : steps_(steps), tables_(tables), outputs_(outputs), memory_(memory), last_(last_uses(steps)) {
    if (steps.empty() || (steps[0].op != Op::Decode && steps[0].op != Op::Pixels))
      throw Bad{"a recipe that does not begin with its image"};
    room_ = sent<Step>(steps.size(), &row_.steps);
    image.rank == 3 ? begin(image) : begin(image, steps[0].p);
    for (now_ = 1; now_ < steps.size(); ++now_) add(steps[now_]);
    buffers_.settle(memory);
  }
  Row row() const { return row_; }

 private:
  // ---- memory ----

  template <class T>
  T* sent(size_t count, uint64_t* address) {
    uint8_t* host = memory_.host_room(std::max<size_t>(count * sizeof(T), 1));
    *address = memory_.behind(host);
    return new (host) T[count]{};
  }

  Image image(double number) const {
    const int64_t i = whole(number);
    if (i < 0 || i >= static_cast<int64_t>(images_.size())) throw Bad{"a step from an image that is not there"};
    return images_[static_cast<size_t>(i)];
  }

  Step& step(const Image& from) {
    Step& s = room_[row_.count++];
    s.op = steps_[now_].op;
    s.in = from.map;
    buffers_.refer(&s.in.data, from.buffer);
    row_.work += from.map.height * from.map.width;
    return s;
  }

  void make(Step& s, int64_t height, int64_t width, int64_t channels) {
    Image out{{nullptr, height, width, channels, width * channels, channels, 1}, kElsewhere};
    out.buffer = buffers_.take(height * width * channels, now_, last_[now_]);
    s.out = out.map;
    buffers_.refer(&s.out.data, out.buffer);
    images_.push_back(out);
  }

  void alike(Step& s) { make(s, s.in.height, s.in.width, s.in.channels); }

  void work_in(Step& s, int room, int64_t bytes) { buffers_.refer(&s.room[room], buffers_.take(bytes, now_, now_)); }

  const Table& table(double number) const {
    const int64_t i = whole(number);
    if (i < 0 || i >= static_cast<int64_t>(tables_.size())) throw Bad{"a table that is not there"};
    return tables_[static_cast<size_t>(i)];
  }

  static uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

  void moved(Image& image, int64_t bytes) {
    image.map.data = reinterpret_cast<uint8_t*>(address_of(image.map.data) + static_cast<uint64_t>(bytes));
  }

  // ---- the beginning ----

  void begin(const View& v) {
    if (v.dtype != DType::U8 || v.elements() == 0 || (v.shape[2] != 1 && v.shape[2] != 3) || v.elements() >= kMaxImageBytes)
      throw Bad{"neither one nor three channels of bytes"};
    images_.push_back({bitmap_of(v), kElsewhere});
  }

  void begin(const View& v, const double* p) {
    if (steps_[0].op != Op::Pixels || v.rank != 1 || v.dtype != DType::U8) throw Bad{"bytes that are not an image's"};
    const int64_t height = side(p[0]), width = side(p[1]), channels = whole(p[2]);
    if (channels != 1 && channels != 3) throw Bad{"neither one nor three channels"};
    if (height * width > kMaxImageBytes / channels || height * width * channels != v.shape[0])
      throw Bad{"bytes that are not the image's"};
    const int64_t x0 = whole(p[4]), y0 = whole(p[5]), x1 = whole(p[6]), y1 = whole(p[7]);
    if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > width || y1 > height) throw Bad{"a window that leaves the image"};
    const bool planar = p[3] != 0;
    const int64_t pixel = planar ? 1 : channels, row = width * pixel, channel = planar ? height * width : 1;
    images_.push_back({{v.data, y1 - y0, x1 - x0, channels, row, pixel, channel}, kElsewhere});
    moved(images_[0], y0 * row + x0 * pixel);
  }

  // ---- steps ----

  void add(const Written& w) {
    const Image from = image(static_cast<double>(w.from));
    const double* p = w.p;
    switch (w.op) {
      case Op::Crop: return crop(from, p);
      case Op::Transpose: return transpose(from, p);
      case Op::Spread: return spread(from);
      case Op::Store: return store(from, p);
      case Op::Patch: return patch(from, p);
      case Op::Resize: case Op::TorchResize: case Op::TorchPick: return resizing(w.op, from, p);
      case Op::Affine: case Op::Project: case Op::TorchWarp: case Op::TorchGrid: return warp(w.op, from, p);
      case Op::Pad: case Op::PadEdges: return pad(from, p, w.op == Op::Pad);
      case Op::Map: return map(from, p);
      case Op::Correlate: return correlate(from, p);
      case Op::Blur: return blur(from, p);
      case Op::Mix: return mix(from, p, w.count);
      default: return color(w, from);
    }
  }

  void crop(Image v, const double* p) {
    const int64_t x0 = whole(p[0]), y0 = whole(p[1]), x1 = whole(p[2]), y1 = whole(p[3]);
    if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > v.map.width || y1 > v.map.height)
      throw Bad{"a crop that leaves the image"};
    moved(v, y0 * v.map.row + x0 * v.map.pixel);
    v.map.height = y1 - y0;
    v.map.width = x1 - x0;
    images_.push_back(v);
  }

  void transpose(Image v, const double* p) {
    const int64_t kind = whole(p[0]);
    if (kind < 0 || kind >= kTransposes) throw Bad{"an unknown transposition"};
    // Of Pillow's methods: mirrored rows, mirrored columns, both axes exchanged at last.
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

  void spread(Image v) {
    if (v.map.channels != 1) throw Bad{"other than one channel to spread"};
    v.map.channels = 3;
    v.map.channel = 0;
    images_.push_back(v);
  }

  // ---- sizes ----

  void resizing(Op op, const Image& from, const double* p) {
    Step& s = step(from);
    const int64_t height = side(p[0]), width = side(p[1]);
    if (op == Op::Resize) {
      resize(s, height, width, p);
    } else if (op == Op::TorchPick) {
      s.kind = p[2] != 0;
    } else {
      torch_resize(s, height, width, whole(p[2]));
    }
    make(s, height, width, s.in.channels);
  }

  void resize(Step& s, int64_t height, int64_t width, const double* p) {
    const int64_t filter = whole(p[6]);
    if (filter < 0 || filter > static_cast<int64_t>(resample::Filter::Hamming)) throw Bad{"an unknown filter"};
    const auto f = static_cast<resample::Filter>(filter);
    View v;
    v.rank = 3;
    v.shape[0] = s.in.height;
    v.shape[1] = s.in.width;
    v.shape[2] = s.in.channels;
    v.set_contiguous_strides();
    const resample::Axis vertical{s.in.height, height, p[2], p[3], f, true}, horizontal{s.in.width, width, p[4], p[5], f, true};
    const auto order = p[7] != 0 ? resample::Order::HorizontalFirst : resample::Order::Pillow;
    resample::Passes passes;
    if (!resample::make_passes(v, vertical, horizontal, order, passes) || passes.empty)
      throw Bad{"a region that is not finite"};
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

  void torch_resize(Step& s, int64_t height, int64_t width, int64_t filter) {
    if (filter < 0 || filter > 2) throw Bad{"an unknown filter"};
    PairAxes& axes = *sent<PairAxes>(1, &s.extra);
    const auto describe = [&](PairAxis& axis, int64_t in, int64_t out) {
      if (in == out) return;
      const torch_resize::Taps taps(static_cast<torch_resize::Filter>(filter), in, out);
      std::copy(taps.start.begin(), taps.start.end(), sent<int32_t>(taps.start.size(), &axis.start));
      std::copy(taps.pairs.begin(), taps.pairs.end(), sent<int32_t>(taps.pairs.size(), &axis.pairs));
      axis.most = taps.most;
      axis.precision = taps.precision;
    };
    describe(axes.horizontal, s.in.width, width);
    describe(axes.vertical, s.in.height, height);
    work_in(s, 0, s.in.height * width * s.in.channels);
  }

  // ---- warps ----

  void warp(Op op, const Image& from, const double* p) {
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

  static void finite(const double* m, int count) {
    for (int i = 0; i < count; ++i)
      if (!std::isfinite(m[i])) throw Bad{"a matrix that is not finite"};
  }

  static void affine(Step& s, int64_t height, int64_t width, const double* p) {
    finite(p + 2, 6);
    std::copy_n(p + 2, 6, s.number);
    for (int64_t c = 0; c < 3; ++c) s.number[6 + c] = byte(p[9 + c]);
    const Walk walk = p[8] != 0                                       ? Walk::Linear
                      : p[3] == 0 && p[5] == 0                        ? Walk::Steps  // a scale, by steps of zero across
                      : stoker::warp::fits_fixed(p + 2, width, height) ? Walk::Fixed
                                                                      : Walk::Steps;
    s.kind = static_cast<int32_t>(walk);
  }

  static void project(Step& s, const double* p) {
    const int64_t sampling = whole(p[11]);
    const bool projective = p[10] != 0;
    if (sampling < 0 || sampling > 2 || (!projective && sampling == 0)) throw Bad{"an unknown interpolation"};
    finite(p + 2, projective ? 8 : 6);
    std::copy_n(p + 2, 8, s.number);
    for (int i = 0; i < 3; ++i) s.number[8 + i] = byte(p[12 + i]);
    s.kind = static_cast<int32_t>(sampling) | (projective ? 4 : 0);
  }

  void torch_grid(Step& s, int64_t height, int64_t width, const double* p) {
    const Table& points = table(p[7]);
    if (int64_t{points.channels} * points.item_bytes * 256 < height * width * 8 || address_of(points.data) % sizeof(float))
      throw Bad{"a grid of another size"};
    s.extra = address_of(points.data);
    s.kind = p[2] != 0;
    std::copy_n(p + 3, 4, s.number + 8);
  }

  // ---- edges, tables, filters ----

  void pad(const Image& from, const double* p, bool constant) {
    const int64_t left = whole(p[0]), top = whole(p[1]), height = side(p[2]), width = side(p[3]);
    const Border border = constant ? Border::Constant : static_cast<Border>(whole(p[4]));
    if (constant && (left < 0 || top < 0 || left + from.map.width > width || top + from.map.height > height))
      throw Bad{"an image that does not fit into its frame"};
    if (!constant && (static_cast<int>(border) < 0 || border >= Border::Constant)) throw Bad{"an unknown border"};
    Step& s = step(from);
    s.kind = static_cast<int32_t>(border);
    s.number[0] = static_cast<double>(left);
    s.number[1] = static_cast<double>(top);
    for (int i = 0; i < 3 && constant; ++i) s.number[2 + i] = byte(p[4 + i]);
    make(s, height, width, s.in.channels);
  }

  void map(const Image& from, const double* p) {
    const Table& t = table(p[0]);
    if (t.item_bytes != 1 || (t.channels != 1 && t.channels != from.map.channels)) throw Bad{"a table of another kind"};
    Step& s = step(from);
    s.extra = address_of(t.data);
    s.number[0] = t.channels > 1;
    alike(s);
  }

  void correlate(const Image& from, const double* p) {
    const int64_t count = whole(p[0]);
    const int64_t height = count > 2 ? side(p[1]) : 0, width = count > 2 ? side(p[2]) : 0;
    if (count < 3 || height > count || width > count || height * width != count - 2) throw Bad{"a filter of another size"};
    Step& s = step(from);
    float* weights = sent<float>(static_cast<size_t>(count - 2), &s.extra);
    for (int64_t i = 0; i < count - 2; ++i) weights[i] = static_cast<float>(p[3 + i]);
    s.number[0] = static_cast<double>(height);
    s.number[1] = static_cast<double>(width);
    row_.work += s.in.height * s.in.width * (count - 2);
    alike(s);
  }

  void blur(const Image& from, const double* p) {
    const int64_t passes = whole(p[2]);
    if (passes < 1 || passes > kMostPasses) throw Bad{"a blur without passes, or with too many"};
    Step& s = step(from);
    Boxes& boxes = *sent<Boxes>(1, &s.extra);
    boxes.passes = passes;
    for (int i = 0; i < 2; ++i) {
      float radius = static_cast<float>(p[i]);
      if (p[3] != 0) radius = box_blur::radius_of_bell(radius, static_cast<int>(passes));
      if (!(radius >= 0 && radius <= box_blur::kMostRadius)) throw Bad{"a blur of that radius"};
      const box_blur::Box box(radius);
      boxes.radius[i] = radius != 0 ? box.radius : -1;
      boxes.whole[i] = box.whole;
      boxes.part[i] = box.part;
      row_.work += s.in.height * s.in.width * passes * (2 * box.radius + 3);
    }
    for (int i = 0; i < 2; ++i) work_in(s, i, s.in.height * s.in.width * s.in.channels);
    alike(s);
  }

  void mix(const Image& from, const double* p, int64_t) {
    const int64_t count = whole(p[0]);
    if (count < 1 || count % 2 == 0) throw Bad{"a mixture that ends early"};
    Step& s = step(from);
    Term* terms = sent<Term>(static_cast<size_t>(count + 1) / 2, &s.extra);
    s.number[0] = static_cast<double>((count + 1) / 2);
    for (int64_t i = -1; i + 1 < count; i += 2, ++terms) {
      const Image other = i < 0 ? from : image(p[1 + i]);
      const Table& t = table(p[i < 0 ? 1 : 2 + i]);
      if (t.item_bytes != 4 || (t.channels != 1 && t.channels != from.map.channels)) throw Bad{"a table of another kind"};
      if (other.map.height != from.map.height || other.map.width != from.map.width || other.map.channels != from.map.channels)
        throw Bad{"a mixture of images of different sizes"};
      *terms = {other.map, address_of(t.data), t.channels > 1};
      buffers_.refer(&terms->image.data, other.buffer);
    }
    alike(s);
  }

  // ---- colours ----

  void color(const Written& w, const Image& from) {
    const bool gray = w.op == Op::Luma || w.op == Op::TorchLuma;
    const bool colored = gray || w.op == Op::Saturate || w.op == Op::Hue || w.op == Op::TorchSaturate ||
                         w.op == Op::TorchHue || w.op == Op::Channels;
    if (colored && from.map.channels != 3) throw Bad{"a change of colours of other than three channels"};
    Step& s = step(from);
    std::copy_n(w.p, w.count, s.number);
    check_color(w, s);
    make(s, s.in.height, s.in.width, gray ? 1 : s.in.channels);
  }

  static void check_color(const Written& w, Step& s) {
    switch (w.op) {
      case Op::Luma: case Op::Contrast: case Op::Saturate: case Op::Autocontrast: case Op::Equalize: case Op::Sharpen:
      case Op::TorchEqualize: return;
      case Op::Hue: byte(w.p[0]); return;
      case Op::TorchHue:
        if (!(std::fabs(w.p[0]) <= 0.5)) throw Bad{"a hue that turns by more than half a circle"};
        return;
      case Op::Channels:
        for (int c = 0; c < 3; ++c)
          if (byte(w.p[c]) > 2) throw Bad{"a channel that is not there"};
        return;
      case Op::TorchContrast:
        if (s.in.height * s.in.width > torch_color::kExactPixels) throw Bad{"a mean that is not exact"};
        break;
      case Op::TorchSharpen:
        if (s.in.height < 3 || s.in.width < 3) throw Bad{"an image without an inside"};
        break;
      case Op::TorchLuma: case Op::TorchSaturate: case Op::TorchAutocontrast: break;
      default: throw Bad{"a step that the GPU has no form for"};
    }
    s.kind = w.p[0] == 1 ? 1 : 2;  // the generation
  }

  // ---- outputs ----

  uint8_t* output(const double* p, int64_t bytes, int64_t item) const {
    const int64_t output = whole(p[0]), first = whole(p[1]);
    if (output < 0 || output >= static_cast<int64_t>(outputs_.size())) throw Bad{"an output that is not there"};
    const View& out = *outputs_[static_cast<size_t>(output)];
    const uint64_t address = address_of(out.data) + static_cast<uint64_t>(first);
    if (first < 0 || bytes > out.elements() - first || address % static_cast<uint64_t>(item))
      throw Bad{"an image that does not fit into its output"};
    return reinterpret_cast<uint8_t*>(address);
  }

  void store(const Image& from, const double* p) {
    const Table* t = whole(p[2]) < 0 ? nullptr : &table(p[2]);
    if (t && t->channels != 1 && t->channels != from.map.channels) throw Bad{"a table of another kind"};
    Step& s = step(from);
    s.kind = t ? t->item_bytes : 1;
    s.extra = t ? address_of(t->data) : 0;
    s.number[0] = t && t->channels > 1;
    s.out.data = output(p, from.map.height * from.map.width * from.map.channels * s.kind, s.kind);
    images_.push_back(from);
  }

  void patch(const Image& from, const double* p) {
    const Patch patch = patch_of(p);
    const Table& values = table(p[12]);
    if (int64_t{values.channels} * values.item_bytes * 256 < patch.values() * patch.item ||
        address_of(values.data) % static_cast<uint64_t>(patch.item))
      throw Bad{"a patch of another size"};
    Step& s = step(from);
    s.kind = static_cast<int32_t>(patch.item);
    s.extra = address_of(values.data);
    std::copy_n(p + 3, 9, s.number);
    s.out.data = output(p, patch.bytes(), patch.item);
    images_.push_back(from);
  }

  const std::vector<Written>& steps_;
  const std::vector<Table>& tables_;
  const std::vector<View*>& outputs_;
  stoker::gpu::RowMemory& memory_;
  const std::vector<size_t> last_;
  Buffers buffers_;
  std::vector<Image> images_;
  Step* room_ = nullptr;
  Row row_{};
  size_t now_ = 0;
};

}  // namespace

Row describe(const std::vector<Written>& steps, const View& image, const std::vector<Table>& tables,
             const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory) {
  return Description(steps, image, tables, outputs, memory).row();
}

}  // namespace stoker::recipe::gpu
