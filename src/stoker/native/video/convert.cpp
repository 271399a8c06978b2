// SPDX-License-Identifier: Apache-2.0
#include "video/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
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

template <class T>
void convert_rows(const Frame& f, const Weights& w, Order order, const RowLoops<T>& loops, uint8_t* out,
                  Scratch& scratch) {
  const int64_t chroma = (f.width + (int64_t{1} << f.shift_x) - 1) >> f.shift_x, padded = chroma << f.shift_x;
  const auto room = static_cast<size_t>(std::max(padded, f.width) + 64);
  T *samples[3] = {}, *none = nullptr;  // aligned copies of rows
  int32_t* terms[3] = {};
  uint8_t* bytes[3] = {};
  const auto carve = [&](Carver c) {
    for (T*& row : samples) row = c.take<T>(room);
    none = c.take<T>(room);
    for (int32_t*& row : terms) row = c.take<int32_t>(room);
    for (uint8_t*& row : bytes) row = c.take<uint8_t>(room);
    return c.used();
  };
  const size_t used = carve(Carver());
  carve(Carver(scratch.get(used)));
  if (f.gray) std::fill(none, none + chroma, static_cast<T>(w.chroma_zero));
  // Rows of words may begin at odd addresses.
  const auto row_of = [&](int plane, int64_t y, int64_t count) -> const T* {
    const uint8_t* row = f.plane[plane] + y * f.pitch[plane];
    if constexpr (sizeof(T) == 1) return row;
    std::memcpy(samples[plane], row, static_cast<size_t>(count) * sizeof(T));
    return samples[plane];
  };
  uint8_t* to[3] = {bytes[0], bytes[1], bytes[2]};
  if (order == Order::BGR) std::swap(to[0], to[2]);
  const bool in_one_pass = loops.rgb && order != Order::Stored && f.shift_x <= 1 && are_words(w);
  const bool past = in_one_pass && 3 * f.width * f.height >= kPastBytes;
  const T *u = none, *v = none;
  int64_t done = -1;  // the row of chroma samples whose terms are there
  for (int64_t y = 0; y < f.height; ++y) {
    const T* luma = row_of(0, y, f.width);
    const int64_t own = f.gray ? 0 : y >> f.shift_y;
    if (own != done) {
      if (!f.gray) u = row_of(1, own, chroma), v = row_of(2, own, chroma);
      done = own;
      if (order == Order::Stored) {
        loops.stored(u, chroma, f.shift_x, w, bytes[1]);
        loops.stored(v, chroma, f.shift_x, w, bytes[2]);
      } else if (!in_one_pass) {
        loops.terms(u, v, chroma, f.shift_x, w, terms);
      }
    }
    if (order == Order::Stored) loops.stored(luma, f.width, 0, w, bytes[0]);
    else if (!in_one_pass) loops.channels(luma, terms, f.width, w, to);
    uint8_t* const row = out + 3 * y * f.width;
    if (in_one_pass) loops.rgb({luma, u, v, f.width, f.shift_x, order == Order::BGR, past}, w, row);
    else weave(row, bytes, f.width);
  }
  if (past) fence();
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

}  // namespace stoker::video
