// SPDX-License-Identifier: Apache-2.0
#include "video/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "base/carver.hpp"
#include "base/fence.hpp"
#include "base/simd.hpp"
#include "pixel/kernels.hpp"

namespace stoker::video {

namespace {

#include "video/convert.ipp"

Forms forms() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) {
    static const bool has_vbmi = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
    return has_vbmi ? forms_vbmi() : forms_avx512();
  }
  if (isa() == Isa::AVX2) return forms_avx2();
#endif
  return kForms;
}

// A frame of this size leaves the cache of its core before the next operator reads it: non-temporal stores avoid
// reading its cache lines before they are written, and keep the decoder's pictures in the cache.
constexpr int64_t kPastBytes = 1 << 20;
constexpr int64_t kPixels = 1 << 20;  // that are woven in one call, whose count is an int

void weave(uint8_t* to, uint8_t* const* planes, int64_t width) {
  for (int64_t x = 0; x < width; x += kPixels) {
    const uint8_t* const from[] = {planes[0] + x, planes[1] + x, planes[2] + x};
    pixel::kernels().weave[1][3](to + 3 * x, from, static_cast<int>(std::min(kPixels, width - x)));
  }
}

bool are_words(const Weights& w) {
  const int32_t all[] = {w.luma, w.red_v, w.green_u, w.green_v, w.blue_u};
  return std::all_of(std::begin(all), std::end(all), [](int32_t x) { return x > -(1 << 15) && x < 1 << 15; });
}

// Converter of the rows of a frame, one at a time.
template <class T>
class Rows {
 public:
  Rows(const Frame& f, const Weights& w, Order order, const RowLoops<T>& loops, Scratch& scratch)
      : f_(f), w_(w), order_(order), loops_(loops) {
    chroma_ = (f.width + (int64_t{1} << f.shift_x) - 1) >> f.shift_x;
    const auto room = static_cast<size_t>(std::max(chroma_ << f.shift_x, f.width) + 64);
    const auto carve = [&](Carver c) {
      for (T*& row : samples_) row = c.take<T>(room);
      none_ = c.take<T>(room);
      for (int32_t*& row : terms_) row = c.take<int32_t>(room);
      for (uint8_t*& row : bytes_) row = c.take<uint8_t>(room);
      return c.used();
    };
    const size_t used = carve(Carver());
    carve(Carver(scratch.get(used)));
    if (f.gray) std::fill(none_, none_ + chroma_, static_cast<T>(w.chroma_zero));
    u_ = v_ = none_;
    std::copy(std::begin(bytes_), std::end(bytes_), std::begin(to_));
    if (order == Order::BGR) std::swap(to_[0], to_[2]);
    in_one_pass_ = loops.rgb && order != Order::Stored && f.shift_x <= 1 && are_words(w);
  }
  bool in_one_pass() const { return in_one_pass_; }
  // Whether rows that share chroma samples are written together, past the caches to `out`.
  bool in_pairs(const uint8_t* out) const {
    const bool fits = f_.width % kPairPixels == 0 && reinterpret_cast<uintptr_t>(out) % kPairPixels == 0;
    return in_one_pass_ && loops_.rgb_pair && !f_.gray && f_.shift_x == 1 && f_.shift_y == 1 && fits;
  }

  // Write the rows `y`, an even number, and `y` + 1 past the caches, which needs a fence.
  void write_pair(int64_t y, uint8_t* rows) {
    const T *luma = row_of(0, y, f_.width), *u = row_of(1, y >> 1, chroma_), *v = row_of(2, y >> 1, chroma_);
    loops_.rgb_pair({luma, u, v, f_.width, 1, order_ == Order::BGR, true}, f_.pitch[0], w_, rows);
  }

  // Write row `y`. `past`: past the caches, which needs a fence.
  void write(int64_t y, uint8_t* row, bool past) {
    const T* luma = row_of(0, y, f_.width);
    const int64_t own = f_.gray ? 0 : y >> f_.shift_y;
    if (own != done_) {
      if (!f_.gray) u_ = row_of(1, own, chroma_), v_ = row_of(2, own, chroma_);
      done_ = own;
      if (order_ == Order::Stored) {
        loops_.stored(u_, chroma_, f_.shift_x, w_, bytes_[1]);
        loops_.stored(v_, chroma_, f_.shift_x, w_, bytes_[2]);
      } else if (!in_one_pass_) {
        loops_.terms(u_, v_, chroma_, f_.shift_x, w_, terms_);
      }
    }
    if (order_ == Order::Stored) loops_.stored(luma, f_.width, 0, w_, bytes_[0]);
    else if (!in_one_pass_) loops_.channels(luma, terms_, f_.width, w_, to_);
    if (in_one_pass_) loops_.rgb({luma, u_, v_, f_.width, f_.shift_x, order_ == Order::BGR, past}, w_, row);
    else weave(row, bytes_, f_.width);
  }

 private:
  // Rows of words may begin at odd addresses.
  const T* row_of(int plane, int64_t y, int64_t count) const {
    const uint8_t* row = f_.plane[plane] + y * f_.pitch[plane];
    if constexpr (sizeof(T) == 1) return row;
    std::memcpy(samples_[plane], row, static_cast<size_t>(count) * sizeof(T));
    return samples_[plane];
  }

  const Frame& f_;
  const Weights& w_;
  const Order order_;
  const RowLoops<T> loops_;
  int64_t chroma_ = 0;
  T *samples_[3] = {}, *none_ = nullptr;  // aligned copies of rows
  int32_t* terms_[3] = {};
  uint8_t *bytes_[3] = {}, *to_[3] = {};
  bool in_one_pass_ = false;
  const T *u_ = nullptr, *v_ = nullptr;
  int64_t done_ = -1;  // the row of chroma samples whose terms are there
};

template <class T>
void convert_rows(const Frame& f, const Weights& w, Order order, const RowLoops<T>& loops, uint8_t* out,
                  Scratch& scratch) {
  Rows<T> rows(f, w, order, loops, scratch);
  const bool past = rows.in_one_pass() && 3 * f.width * f.height >= kPastBytes;
  int64_t y = 0;
  if (past && rows.in_pairs(out))
    for (; y + 1 < f.height; y += 2) rows.write_pair(y, out + 3 * y * f.width);
  for (; y < f.height; ++y) rows.write(y, out + 3 * y * f.width, past);
  if (past) fence();
}

void copy_rows(void* to, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
  const View& out = *static_cast<const View*>(to);
  for (int64_t y = y0; y < y1; ++y, pixels += pitch)
    std::memcpy(out.data + y * out.stride[0], pixels, static_cast<size_t>(3 * out.shape[1]));
}

template <class T>
bool resample_rows(const Frame& f, const Weights& w, Order order, const RowLoops<T>& loops,
                   const resample::Axis& vertical, const resample::Axis& horizontal, View out, Scratch& room,
                   Scratch& scratch) {
  View whole;
  whole.dtype = DType::U8;
  whole.rank = 3;
  whole.shape[0] = f.height;
  whole.shape[1] = f.width;
  whole.shape[2] = 3;
  whole.set_contiguous_strides();
  Rows<T> rows(f, w, order, loops, room);
  const resample::RowMaker maker{
      [](void* own, int64_t y, uint8_t* to) { static_cast<Rows<T>*>(own)->write(y, to, false); }, &rows};
  const resample::Sink sink{copy_rows, &out};
  if (resample::resample_made(maker, whole, vertical, horizontal, sink, scratch)) return true;
  const auto image = std::make_unique<uint8_t[]>(static_cast<size_t>(3 * f.width * f.height));
  whole.data = image.get();
  convert_rows(f, w, order, loops, image.get(), room);
  return resample::resample(whole, vertical, horizontal, sink, scratch);
}

}  // namespace

Weights weights_of(double kr, double kb, bool full_range, int extra, double scale) {
  const double kg = 1 - kr - kb, one = 1 << kFractionBits, largest = (256 << extra) - 1;
  const double luma = full_range ? 255 / largest * (1 << extra) : 255.0 / 219;
  const double chroma = full_range ? luma : 255.0 / 224;
  const auto weight = [&](double x) { return static_cast<int32_t>(std::lround(x * scale * one)); };
  Weights w{};
  w.luma_zero = full_range ? 0 : 16 << extra;
  w.chroma_zero = 128 << extra;
  w.luma = weight(luma);
  w.red_v = weight(2 * (1 - kr) * chroma);
  w.green_u = weight(-2 * kb * (1 - kb) / kg * chroma);
  w.green_v = weight(-2 * kr * (1 - kr) / kg * chroma);
  w.blue_u = weight(2 * (1 - kb) * chroma);
  w.extra = extra;
  return w;
}

namespace {

template <class T>
void convert_words(const Frame& f, const Weights& w, int extra, Order order, uint16_t* out) {
  const auto sample = [&](int plane, int64_t y, int64_t x) {
    T value;  // words may lie at odd addresses
    std::memcpy(&value, f.plane[plane] + y * f.pitch[plane] + x * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<int64_t>(value);
  };
  const auto clamped_word = [](int64_t x) { return static_cast<uint16_t>(std::clamp<int64_t>(x, 0, 65535)); };
  const int shift = kFractionBits + extra;
  const int64_t half = int64_t{1} << (shift - 1);
  const int red = order == Order::BGR ? 2 : 0;
  for (int64_t y = 0; y < f.height; ++y) {
    for (int64_t x = 0; x < f.width; ++x, out += 3) {
      const int64_t own_y = y >> f.shift_y, own_x = x >> f.shift_x, luma = sample(0, y, x);
      const int64_t u = f.gray ? w.chroma_zero : sample(1, own_y, own_x);
      const int64_t v = f.gray ? w.chroma_zero : sample(2, own_y, own_x);
      if (order == Order::Stored) {
        out[0] = clamped_word(luma << (8 - extra)), out[1] = clamped_word(u << (8 - extra));
        out[2] = clamped_word(v << (8 - extra));
        continue;
      }
      const int64_t du = u - w.chroma_zero, dv = v - w.chroma_zero, base = w.luma * (luma - w.luma_zero) + half;
      out[red] = clamped_word((base + w.red_v * dv) >> shift);
      out[1] = clamped_word((base + w.green_u * du + w.green_v * dv) >> shift);
      out[2 - red] = clamped_word((base + w.blue_u * du) >> shift);
    }
  }
}

}  // namespace

void convert_words(const Frame& frame, double kr, double kb, bool full_range, int extra, Order order, uint16_t* out) {
  const Weights weights = weights_of(kr, kb, full_range, extra, 257);
  if (frame.wide) convert_words<uint16_t>(frame, weights, extra, order, out);
  else convert_words<uint8_t>(frame, weights, extra, order, out);
}

void convert(const Frame& frame, const Weights& weights, Order order, uint8_t* out, Scratch& scratch) {
  const Forms all = forms();
  if (frame.wide) convert_rows<uint16_t>(frame, weights, order, all.words, out, scratch);
  else convert_rows<uint8_t>(frame, weights, order, all.bytes, out, scratch);
}

bool convert_resampled(const Frame& frame, const Weights& weights, Order order, const resample::Axis& vertical,
                       const resample::Axis& horizontal, const View& out, Scratch& rows, Scratch& scratch) {
  const Forms all = forms();
  if (frame.wide)
    return resample_rows<uint16_t>(frame, weights, order, all.words, vertical, horizontal, out, rows, scratch);
  return resample_rows<uint8_t>(frame, weights, order, all.bytes, vertical, horizontal, out, rows, scratch);
}

}  // namespace stoker::video
