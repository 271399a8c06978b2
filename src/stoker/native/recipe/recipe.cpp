// SPDX-License-Identifier: Apache-2.0
#include "recipe/recipe.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/fence.hpp"
#include "io/file_ref.hpp"
#include "jpeg/jpeg.hpp"
#include "recipe/images.hpp"
#include "recipe/pixels.hpp"
#include "recipe/store.hpp"

namespace stoker::recipe {

namespace {

constexpr size_t kKeptBytes = 64u << 20;  // the memory of a larger image is released after the recipe

// Return a view of a contiguous image of bytes whose memory is set later.
View side_by_side(int64_t height, int64_t width, int64_t channels) {
  View v;
  v.rank = 3;
  v.shape[0] = height;
  v.shape[1] = width;
  v.shape[2] = channels;
  v.set_contiguous_strides();
  return v;
}

// Rows between a decode and a resize: few enough for the first cache, many enough that the filter's weights are not
// read again for each row.
constexpr int64_t kRowsTogether = 8;

struct SkipFile {};

class Interpreter {
 public:
  Interpreter(RecipeBatch& batch, int64_t index, ThreadScratch& scratch)
      : source_(bytes_of(batch.sources[index], scratch)), images_(batch, scratch) {
    const double* numbers = batch.numbers.data();
    steps_ = read_steps(numbers + batch.starts[index], numbers + batch.starts[index + 1]);
    verify(steps_, batch.tables, batch.outputs);
    count_uses();
    for (size_t at = 0; at < steps_.size();) {
      const size_t done = several(at);
      if (!done) step(steps_[at].op, steps_[at].from, steps_[at].p);
      at += std::max<size_t>(done, 1);
    }
  }

 private:
  // Steps that store return the image that they take.
  static bool stores(Op op) { return op == Op::StorePixels || op == Op::Store || op == Op::Patch; }

  // Count how many steps read each step's pixels: those of its own image, or of an image that is the same. A patch
  // reads none.
  void count_uses() {
    uses_.assign(steps_.size(), 0);
    std::vector<size_t> computed_by(steps_.size());  // the step that computes each image's pixels
    for (size_t at = 0; at < steps_.size(); ++at) {
      const RecordedStep& step = steps_[at];
      computed_by[at] = stores(step.op) ? computed_by[static_cast<size_t>(step.from)] : at;
      if (step.from >= 0 && step.op != Op::Patch) ++uses_[computed_by[static_cast<size_t>(step.from)]];
      each_other_image(step, [&](double number) { ++uses_[computed_by[static_cast<size_t>(number)]]; });
    }
  }

  static Source bytes_of(const Source& source, ThreadScratch& scratch) {
    if (!source.is_file_ref) return source;
    View file;
    std::string error;
    if (!read_file_ref(source.data, source.size, scratch.file, file, error)) throw SkipFile{};
    return {file.data, static_cast<size_t>(file.shape[0])};
  }

  // Run several steps together, beginning with this one; return their number, or 0 if they cannot be combined.
  size_t several(size_t at) {
    if (steps_[at].op == Op::Resize) return resize_and_store(at);
    if (steps_[at].op == Op::TorchResize) return torch_resize_and_store(at);
    if (steps_[at].op == Op::Floats) return arrange_and_store(at);
    if (steps_[at].op == Op::Pad || steps_[at].op == Op::TorchPick) return shape_and_store(at);
    if (at != 0) return 0;
    if (steps_.size() > 2 && steps_[1].op == Op::TorchResize && is_used_once_by(1)) return torch_resize_and_store(1);
    if (steps_.size() != 2 || steps_[0].op != Op::Decode || steps_[1].op != Op::StorePixels || steps_[1].from != 0)
      return 0;
    decode(steps_[0].p, steps_[1].p);  // directly into the output
    images_.skip_to(2);
    return 2;
  }

  void step(Op op, int64_t from, const double* p) {
    if (op == Op::Decode) return decode(p);
    if (op == Op::Pixels) return pixels(p);
    const View source = images_.at(from);
    switch (op) {
      case Op::StorePixels: return store_pixels(source, p);
      case Op::Store:
        is_floats(source) ? store_floats(source, p) : store_image(place(source, p), source);
        return images_.push(source);
      case Op::Patch: patch(p); return images_.push(source);
      default:
        if (is_floats(source)) return make_floats(images_, op, source, p);
        if (!make_shape(images_, op, source, p)) make_values(images_, op, source, p);
    }
  }

  // The file and the window of a decode step.
  struct Opened {
    jpeg::Info info;
    jpeg::Window window;
    jpeg::Format format;
    int64_t height() const { return window.y1 - window.y0; }
    int64_t width() const { return window.x1 - window.x0; }
  };

  Opened opened(const double* p) const {
    const int64_t channels = whole(p[0]);
    Opened file;
    if (!jpeg::parse(source_.data, source_.size, file.info)) throw SkipFile{};
    const auto at = [&](int i) { return static_cast<int32_t>(p[i]); };
    file.window = {at(1), at(2), at(3), at(4)};
    if (file.window.x1 > file.info.width || file.window.y1 > file.info.height)
      throw SkipFile{};  // the file differs from the recorded one
    const bool gray = file.info.model == jpeg::Model::Gray;
    const bool luma = channels == 1 && file.info.model == jpeg::Model::YCbCr;  // the file's Y plane, unconverted
    if (gray != (channels == 1) && !luma) throw SkipFile{};
    file.format = luma ? jpeg::Format::GRAY : jpeg::Format::ANY;
    return file;
  }

  // Damaged data: Pillow decides what is an error and what only deserves a warning.
  static void check(jpeg::Status status, const double* p) {
    if (status != jpeg::Status::Ok && (status != jpeg::Status::Truncated || p[5] == 0)) throw SkipFile{};
  }

  // Decode into the destination of the `store` step if one follows.
  void decode(const double* p, const double* store = nullptr) {
    const Opened file = opened(p);
    const int64_t channels = whole(p[0]);
    const View v = store ? stored(file.height(), file.width(), channels, store)
                         : images_.fresh(file.height(), file.width(), channels);
    check(jpeg::decode(source_.data, source_.size, file.info, file.window, file.format, v.data, v.stride[0],
                       images_.work(0)),
          p);
  }

  // Return the given pixels where they are. `planar` 0: [H,W,C], 1: [C,H,W], 2: four bytes per pixel, as in Pillow.
  View given_pixels(const double* p) const {
    const int64_t height = whole(p[0]), width = whole(p[1]), channels = whole(p[2]);
    const int64_t between = p[3] == 2 ? 4 : channels;
    if (height * width * between != static_cast<int64_t>(source_.size))
      throw InvalidRecipe{"bytes that are not the image's"};
    View v = side_by_side(height, width, channels);
    v.data = const_cast<uint8_t*>(source_.data);  // only read
    v.stride[1] = between;
    v.stride[0] = width * between;
    if (p[3] == 1 && channels > 1) {
      v.stride[2] = height * width;
      v.stride[1] = 1;
      v.stride[0] = width;
    }
    return v;
  }

  // Copy the pixels, because other steps may read a few bytes past the end of an image.
  void pixels(const double* p) {
    const View from = cropped(given_pixels(p), p + 4);
    recipe::copy(from, images_.fresh(from.shape[0], from.shape[1], from.shape[2]));
  }

  // Return whether step `at` takes the image of the step before it, which no other step takes.
  bool is_used_once_by(size_t at) const {
    return uses_[at - 1] == 1 && steps_[at].from == static_cast<int64_t>(at) - 1;
  }

  // Steps after a resize that only choose pixels and store them.
  struct Tail {
    size_t last = 0;    // the `Store` step; 0: there are other steps
    size_t floats = 0;  // the `Floats` step, if the values are stored in another order; the step after it has the order
    torch_resize::Region window{};
    bool mirror[2] = {false, false};  // columns, rows
  };

  // Return the steps after the resize `at`. Windows are combined if `may_crop`.
  Tail tail_of(size_t at, bool may_crop) const {
    Tail tail;
    tail.window = {0, 0, whole(steps_[at].p[1]), whole(steps_[at].p[0])};
    for (size_t next = at + 1; next < steps_.size() && is_used_once_by(next); ++next) {
      const RecordedStep& s = steps_[next];
      if (is_end(tail, next)) return tail;
      const double kind = s.op == Op::Transpose ? s.p[0] : -1;
      if (kind == 0 || kind == 1 || kind == 3) {  // rows, columns, both
        tail.mirror[0] ^= kind != 1;
        tail.mirror[1] ^= kind != 0;
      } else if (s.op == Op::Crop && may_crop) {
        tail.window = crop_of(tail, s.p);
      } else {
        return tail;
      }
    }
    return tail;
  }

  // Return whether the steps from `next` on only store; note them in `tail`.
  bool is_end(Tail& tail, size_t next) const {
    if (steps_[next].op == Op::Store) {
      tail.last = next;
      return true;
    }
    if (steps_[next].op != Op::Floats || !is_arranged_and_stored(next + 1)) return false;
    tail.floats = next;
    tail.last = next + 2;
    return true;
  }

  bool is_arranged_and_stored(size_t at) const {
    return at + 1 < steps_.size() && steps_[at].op == Op::Arrange && steps_[at + 1].op == Op::Store &&
           is_used_once_by(at) && is_used_once_by(at + 1);
  }

  // Return the window of the resized image that a crop of its mirrored window shows.
  static torch_resize::Region crop_of(const Tail& tail, const double* p) {
    const torch_resize::Region& w = tail.window;
    const int64_t x0 = whole(p[0]), y0 = whole(p[1]), x1 = whole(p[2]), y1 = whole(p[3]);
    const bool across = tail.mirror[0], down = tail.mirror[1];
    return {across ? w.x1 - x1 : w.x0 + x0, down ? w.y1 - y1 : w.y0 + y0, across ? w.x1 - x0 : w.x0 + x1,
            down ? w.y1 - y0 : w.y0 + y1};
  }

  // Return the destination of an image of this size at the end of `tail`.
  Planes planes_of(const Tail& tail, const View& out, bool spread) {
    Planes planes = place(out, steps_[tail.last].p);
    if (tail.floats != 0) {
      order_.emplace(steps_[tail.floats + 1].p, out.shape[0], out.shape[1], out.shape[2]);
      planes.arrangement = &*order_;
      set_table(planes, images_.table(steps_[tail.floats].p[0]));
    }
    planes.mirror_x = tail.mirror[0];
    planes.mirror_y = tail.mirror[1];
    planes.spread = spread;
    return planes;
  }

  static void take_rows(void* to, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
    store_rows(*static_cast<const Planes*>(to), y0, y1, pixels, pitch);
  }

  // Resize, mirror and store in one pass, row by row out of the cache, if the result is stored once and not used
  // otherwise. Return the number of steps done; 0 if the steps are others.
  size_t resize_and_store(size_t at) {
    const Tail tail = tail_of(at, false);
    if (tail.last == 0) return 0;
    const View source = images_.at(steps_[at].from);
    View out = source;  // without its memory
    out.shape[0] = whole(steps_[at].p[0]);
    out.shape[1] = whole(steps_[at].p[1]);
    Planes planes = planes_of(tail, out, is_spread(source));
    const resample::Sink sink{take_rows, &planes};
    const Resizing r(source, steps_[at].p);
    if (!resample::resample(once(source), r.vertical, r.horizontal, sink, images_.work(0), r.order))
      throw InvalidRecipe{"a region that is not finite"};
    images_.skip_to(tail.last + 1);  // these steps have no pixels; patches refer to the last one
    return tail.last - at + 1;
  }

  // The same for torch's resize, of which only the window of later crops is computed. If the image of the file is not
  // used otherwise either, only its part that this window needs is decoded.
  size_t torch_resize_and_store(size_t at) {
    const Tail tail = tail_of(at, true);
    if (tail.last == 0) return 0;
    const bool from_file = images_.count() == 0;
    const View source = from_file ? file_image() : images_.at(steps_[at].from);
    const double* p = steps_[at].p;
    const bool spread = is_spread(source);
    const torch_resize::Resize& resize =
        images_.resizes().get({source.shape[0], source.shape[1], spread ? 1 : source.shape[2],
                               filter_of(p[2], p[3] != 0), p[3] != 0, whole(p[0]), whole(p[1]), tail.window});
    View out = source;
    out.shape[0] = tail.window.y1 - tail.window.y0;
    out.shape[1] = tail.window.x1 - tail.window.x0;
    Planes planes = planes_of(tail, out, spread);
    const torch_resize::Sink sink{take_rows, &planes};
    if (from_file && steps_[0].op == Op::Decode) {
      decode_and_resize(resize, sink);
    } else {
      const View part = from_file ? given_part(resize.needed()) : part_of(once(source), resize.needed());
      if (!resize.run(part, sink, images_.work(0))) throw InvalidRecipe{"an image that cannot be resized"};
    }
    images_.skip_to(tail.last + 1);
    return from_file ? tail.last + 1 : tail.last - at + 1;
  }

  // Store floats in another order in one pass.
  size_t arrange_and_store(size_t at) {
    Tail tail;
    if (!is_end(tail, at)) return 0;
    const View source = images_.at(steps_[at].from);
    recipe::store_image(planes_of(tail, source, false), source);
    images_.skip_to(tail.last + 1);
    return tail.last - at + 1;
  }

  // Frame one channel of bytes, or choose its nearest values, directly in the output if it is only stored there.
  size_t shape_and_store(size_t at) {
    const RecordedStep& s = steps_[at];
    const bool stored_next = at + 1 < steps_.size() && steps_[at + 1].op == Op::Store && is_used_once_by(at + 1);
    const View source = images_.at(s.from);
    if (!stored_next || source.shape[2] != 1 || is_floats(source) || steps_[at + 1].p[2] >= 0) return 0;
    const double* size = s.p + (s.op == Op::Pad ? 2 : 0);
    const View out = stored(whole(size[0]), whole(size[1]), 1, steps_[at + 1].p);
    if (s.op == Op::Pad) pad_into(source, s.p, out);
    else torch_pick(images_, source, s.p, out);
    images_.skip_to(at + 2);
    return 2;
  }

  static View part_of(View v, const torch_resize::Region& r) {
    const double window[4] = {static_cast<double>(r.x0), static_cast<double>(r.y0), static_cast<double>(r.x1),
                              static_cast<double>(r.y1)};
    return cropped(v, window);
  }

  // Return the image of the first step, without its memory.
  View file_image() const {
    const RecordedStep& s = steps_[0];
    const double* window = s.p + (s.op == Op::Decode ? 1 : 4);
    return side_by_side(whole(window[3]) - whole(window[1]), whole(window[2]) - whole(window[0]),
                        whole(s.p[s.op == Op::Decode ? 0 : 2]));
  }

  // Return the parameters of the first step with a smaller window, which begins at p[at].
  std::array<double, 8> first_step(const torch_resize::Region& part, int at) const {
    std::array<double, 8> p{};
    std::copy_n(steps_[0].p, at + (at == 1 ? 5 : 4), p.begin());
    double* window = p.data() + at;
    const double left = window[0], top = window[1];
    window[0] = left + static_cast<double>(part.x0);
    window[1] = top + static_cast<double>(part.y0);
    window[2] = left + static_cast<double>(part.x1);
    window[3] = top + static_cast<double>(part.y1);
    return p;
  }

  // Decode the part of the file that a resize needs, and resize its rows while they are in the cache.
  void decode_and_resize(const torch_resize::Resize& resize, const torch_resize::Sink& sink) {
    using ByRows = torch_resize::Resize::ByRows;
    const std::array<double, 8> p = first_step(resize.needed(), 1);
    const Opened file = opened(p.data());
    ByRows rows(resize, images_.work(1));
    const jpeg::RowSink to{[](void* rows, int32_t y0, int32_t y1, const uint8_t* pixels, ptrdiff_t pitch) {
                             static_cast<ByRows*>(rows)->take(pixels, pitch, y1 - y0);
                           },
                           &rows, static_cast<int32_t>(kRowsTogether / rows.rows_at_once() * rows.rows_at_once()),
                           rows.reach()};
    check(jpeg::decode_rows(source_.data, source_.size, file.info, file.window, file.format, to, images_.work(0)),
          p.data());
    rows.finish(sink);
  }

  // Return a part of the given pixels.
  View given_part(const torch_resize::Region& part) {
    const std::array<double, 8> p = first_step(part, 4);
    const View whole_image = given_pixels(p.data());
    if (whole_image.stride[2] == 1) return part_of(whole_image, {whole(p[4]), whole(p[5]), whole(p[6]), whole(p[7])});
    pixels(p.data());
    return images_.at(0);
  }

  void store_pixels(const View& v, const double* p) {
    recipe::copy(v, stored(v.shape[0], v.shape[1], v.shape[2], p));
    images_.push(v);
  }

  // Return the location of an image in an output as a contiguous view.
  View stored(int64_t height, int64_t width, int64_t channels, const double* p) const {
    View out = side_by_side(height, width, channels);
    out.data = images_.place(p);
    return out;
  }

  void store_floats(const View& v, const double* p) {
    recipe::store_floats(v, reinterpret_cast<float*>(images_.place(p)));
  }

  Planes place(const View& v, const double* p) {
    Planes planes{images_.place(p), v.shape[0], v.shape[1], v.shape[2], nullptr, 1, false, false, false, false};
    if (p[2] >= 0) set_table(planes, images_.table(p[2]));
    return planes;
  }

  static void set_table(Planes& planes, const Table& table) {
    planes.table = table.data;
    planes.item = table.item_bytes;
    planes.per_channel = table.channels > 1;
    planes.chains = table.chains.empty() ? nullptr : table.chains.data();
  }

  void patch(const double* p) {
    const Patch patch = patch_of(p);
    const int64_t item = patch.item;
    uint8_t* const to = images_.place(p);
    fence();  // the non-temporal stores of the pixels below must become visible first
    const uint8_t* from = images_.table(p[12]).data;
    for (int64_t c = patch.c0; c < patch.c1; ++c)
      for (int64_t y = patch.y0; y < patch.y1; ++y)
        for (int64_t x = patch.x0; x < patch.x1; ++x, from += patch.one ? 0 : item)
          std::memcpy(to + ((c * patch.height + y) * patch.width + x) * item, from, static_cast<size_t>(item));
  }

  const Source source_;
  Images images_;
  std::vector<RecordedStep> steps_;
  std::vector<int> uses_;
  std::optional<Arrangement> order_;  // of the image that is being stored
};

}  // namespace

View Images::at(int64_t index) const { return images_[static_cast<size_t>(index)]; }

View Images::fresh(int64_t height, int64_t width, int64_t channels) {
  const size_t at = images_.size();
  while (scratch_.images.size() <= at) scratch_.images.push_back(std::make_unique<Scratch>());
  View v = side_by_side(height, width, channels);
  v.data = scratch_.images[at]->get(static_cast<size_t>(v.elements()) + 1);
  images_.push_back(v);
  return v;
}

View Images::fresh_floats(int64_t height, int64_t width, int64_t channels) {
  View v = fresh(height, width * static_cast<int64_t>(sizeof(float)), channels);  // as many bytes as the floats take
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
  out.data = scratch_.work[1].get(static_cast<size_t>(out.elements()) + 1);
  recipe::copy(v, out);
  return out;
}

Table table_of(const uint8_t* data, int32_t item_bytes, int32_t channels) {
  Table table{data, item_bytes, channels};
  if (item_bytes != static_cast<int32_t>(sizeof(float)) || !has_chains()) return table;
  for (int32_t c = 0; c < channels; ++c) {
    Chain chain;
    if (!find_chain(reinterpret_cast<const float*>(data) + 256 * c, chain)) {
      table.chains.clear();
      return table;
    }
    table.chains.push_back(chain);
  }
  return table;
}

const Table& Images::table(double index) const { return batch_.tables[static_cast<size_t>(index)]; }

uint8_t* Images::place(const double* p) const { return batch_.outputs[static_cast<size_t>(p[0])].data + whole(p[1]); }

// If there is no memory for the text either, use a short text that needs none.
static void refuse(RecipeBatch& batch, int64_t index, const char* why) noexcept {
  batch.status[index] = Status::Invalid;
  try {
    batch.why[index] = why;
  } catch (const std::bad_alloc&) { batch.why[index] = "no memory"; }
}

void materialize(RecipeBatch& batch, int64_t index, ThreadScratch& scratch) {
  try {
    Interpreter(batch, index, scratch);
    fence();
    batch.status[index] = Status::Done;
  } catch (const SkipFile&) { batch.status[index] = Status::Skipped; } catch (const InvalidRecipe& bad) {
    refuse(batch, index, bad.why);
  } catch (const std::bad_alloc&) {
    refuse(batch, index, "not enough memory");
  } catch (const std::exception& error) {  // an exception that leaves a thread's function would end the process
    refuse(batch, index, error.what());
  } catch (...) { refuse(batch, index, "an unknown error"); }
  for (std::unique_ptr<Scratch>& image : scratch.images)
    if (image->capacity() > kKeptBytes) image = std::make_unique<Scratch>();
  for (Scratch& scratch : scratch.work)
    if (scratch.capacity() > kKeptBytes) scratch = Scratch();
  if (scratch.file.capacity() > kKeptBytes) scratch.file = Scratch();
}

}  // namespace stoker::recipe
