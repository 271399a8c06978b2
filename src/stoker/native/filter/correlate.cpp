// SPDX-License-Identifier: Apache-2.0
#include "filter/correlate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/simd.hpp"
#include "filter/correlate_words.hpp"
#include "filter/tap_sums.hpp"
#include "pixel/kernels.hpp"
#include "shared/half.hpp"

namespace stoker::correlate {

namespace {

// Supported element types: bytes, 16 bits and float32; not Bool or bfloat16.
bool filters(DType t) {
  switch (t) {
    case DType::U8:
    case DType::I8:
    case DType::U16:
    case DType::I16:
    case DType::F16:
    case DType::F32: return true;
    default: return false;
  }
}

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "filter/tap_sums.ipp"

TapSums tap_sums() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) return tap_sums_avx512();
  if (isa() == Isa::AVX2) return tap_sums_avx2();
#endif
  return kTapSums;
}

// Sums by fused multiplications and additions.
template <int64_t kWide>
[[gnu::always_inline]] inline void fused_tile(const Sum& s, int64_t x0) {
  float sums[kWide] = {};
  const Tap* const taps = s.taps;
  const int64_t count = s.tap_count;
  for (int64_t i = 0; i < count; ++i) {
    const float w = taps[i].weight;
    const float* const from = taps[i].from + x0;
    // Without a statement here GCC takes two taps per turn of the inner loop, which then keeps its sums in memory and takes
    // three times as long.
    asm("" : : "r"(from));
    for (int64_t k = 0; k < kWide; ++k) sums[k] = __builtin_fmaf(from[k], w, sums[k]);
  }
  std::copy_n(sums, kWide, s.out + x0);
}

[[gnu::always_inline]] inline void fused_row(const Sum& s) {
  int64_t x = 0;
  for (; x + kTile <= s.count; x += kTile) fused_tile<kTile>(s, x);
  for (; x + 8 <= s.count; x += 8) fused_tile<8>(s, x);
  for (; x < s.count; ++x) fused_tile<1>(s, x);
}

void fused_row_plain(const Sum& s) { fused_row(s); }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void fused_row_avx2(const Sum& s) { fused_row(s); }
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"))) void fused_row_avx512(
    const Sum& s) {
  fused_row(s);
}
bool has_fma() { return __builtin_cpu_supports("fma"); }
#endif

using SumRow = void (*)(const Sum&);

SumRow fused_sums() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) return fused_row_avx512;
  if (isa() == Isa::AVX2 && has_fma()) return fused_row_avx2;
#endif
  return fused_row_plain;
}

pixel::ConvertFn floats_of(DType t) { return pixel::kernels().load[pixel::at(t)][pixel::at(pixel::Type::F32)]; }
pixel::ConvertFn values_of(DType t) { return pixel::kernels().store[pixel::at(t)][pixel::at(pixel::Type::F32)]; }

constexpr int64_t kCacheLine = 64;
constexpr int64_t kPiece = 1 << 20;  // values per call of a conversion, which counts them in 32 bits

// Convert n contiguous values.
void convert(pixel::ConvertFn f, uint8_t* to, int64_t to_size, const uint8_t* from, int64_t from_size, int64_t n) {
  for (int64_t i = 0; i < n; i += kPiece)
    f(to + i * to_size, from + i * from_size, static_cast<int>(std::min(kPiece, n - i)));
}

// Rows of an image as floats, with the pixels that a window reads beyond both edges.
class FloatRows {
 public:
  // `columns` has room for `width` numbers: the pixels of a row, with those beyond the edges. `staged` has room for a row
  // of the image.
  FloatRows(const View& src, const Window& window, int64_t width, int64_t* columns, uint8_t* staged)
      : src_(src),
        window_(window),
        width_(width),
        columns_(columns),
        staged_(staged),
        to_floats_(floats_of(src.dtype)) {
    empty_ = src.shape[0] < 1 || src.shape[1] < 1;
    for (int64_t x = 0; x < width; ++x)
      columns[x] = empty_ ? -1 : border_position(x - window.left, src.shape[1], window.border);
    // Pixels first_..last_ - 1 of the row are those of the image in their order.
    first_ = std::clamp<int64_t>(window.left, 0, width);
    last_ = empty_ ? first_ : std::clamp<int64_t>(window.left + src.shape[1], first_, width);
    size_ = size_of(src.dtype);
    dense_ = src.stride[2] == size_ && src.stride[1] == src.shape[2] * size_;
  }

  int64_t values() const { return width_ * src_.shape[2]; }

  // Read the row at `y`, which may lie beyond the image. `to` has room for values().
  void read(int64_t y, float* to) const {
    const int64_t at = empty_ ? -1 : border_position(y, src_.shape[0], window_.border), channels = src_.shape[2];
    if (at < 0) {
      std::fill_n(to, values(), window_.fill);
      return;
    }
    const uint8_t* row = src_.data + at * src_.stride[0];
    if (last_ > first_) {
      const uint8_t* pixels = row + (first_ - window_.left) * src_.stride[1];
      const int64_t n = (last_ - first_) * channels;
      // Rows are read so far apart in time that the processor does not fetch the next one by itself.
      for (int64_t i = 0; i < n * size_; i += kCacheLine) __builtin_prefetch(pixels + src_.stride[0] + i);
      if (!dense_) pixels = staged(pixels);
      convert(to_floats_, reinterpret_cast<uint8_t*>(to + first_ * channels), sizeof(float), pixels, size_, n);
    }
    beyond(row, 0, first_, to);
    beyond(row, last_, width_, to);
  }

 private:
  // Gather the pixels of a row whose values are not contiguous.
  const uint8_t* staged(const uint8_t* pixels) const {
    uint8_t* to = staged_;
    for (int64_t x = first_; x < last_; ++x, pixels += src_.stride[1])
      for (int64_t c = 0; c < src_.shape[2]; ++c, to += size_)
        std::memcpy(to, pixels + c * src_.stride[2], static_cast<size_t>(size_));
    return staged_;
  }

  // Pixels begin..end - 1, which repeat the image's or have the fill value.
  void beyond(const uint8_t* row, int64_t begin, int64_t end, float* to) const {
    const int64_t channels = src_.shape[2];
    for (int64_t x = begin; x < end; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        float* value = to + x * channels + c;
        if (columns_[x] < 0) *value = window_.fill;
        else to_floats_(value, row + columns_[x] * src_.stride[1] + c * src_.stride[2], 1);
      }
  }

  const View& src_;
  const Window& window_;
  int64_t width_, first_, last_;
  const int64_t* columns_;
  uint8_t* staged_;
  pixel::ConvertFn to_floats_;
  int64_t size_;
  bool empty_, dense_;
};

// Store sums as a row of the output. `staged` has room for them in the output's type.
void store_row(const float* from, const View& dst, int64_t y, uint8_t* staged) {
  const int64_t size = size_of(dst.dtype), channels = dst.shape[2], n = dst.shape[1] * channels;
  const pixel::ConvertFn f = values_of(dst.dtype);
  uint8_t* to = dst.data + y * dst.stride[0];
  const auto* values = reinterpret_cast<const uint8_t*>(from);
  if (dst.stride[2] == size && dst.stride[1] == channels * size) return convert(f, to, size, values, sizeof(float), n);
  convert(f, staged, size, values, sizeof(float), n);
  for (int64_t x = 0; x < dst.shape[1]; ++x, to += dst.stride[1])
    for (int64_t c = 0; c < channels; ++c, staged += size)
      std::memcpy(to + c * dst.stride[2], staged, static_cast<size_t>(size));
}

// Return whether the arguments fit. With `*done`, there is nothing to compute.
bool check(const View& src, const Window& window, const View& dst, bool* done) {
  if (!filters(src.dtype) || !filters(dst.dtype) || src.rank != 3 || dst.rank != 3 || src.shape[2] != dst.shape[2])
    return false;
  if (window.height < 1 || window.width < 1) return false;
  *done = dst.elements() == 0;
  return *done || (src.shape[0] >= 1 && src.shape[1] >= 1) || window.border == Border::Constant;
}

// Return whether terms with a weight of zero change no sum: values are finite, and a sum that starts as +0 never becomes
// -0 unless a product that underflows is added without being rounded.
bool may_skip_zeros(const View& src, const Window& window) {
  return !window.fused && src.dtype != DType::F16 && src.dtype != DType::F32 && std::isfinite(window.fill);
}

// List the taps of a window over `rows`, those of its own rows, without weights of zero if `skips`: lines of
// `motion_blur` have about two weights per row. Return their number.
int64_t list_taps(const float* const* rows, const Window& window, int64_t channels, bool skips, Tap* taps) {
  const float* weight = window.weights;
  const Tap* const first = taps;
  for (int64_t i = 0; i < window.height; ++i)
    for (int64_t j = 0; j < window.width; ++j, ++weight)
      if (!skips || *weight != 0) *taps++ = {rows[i] + j * channels, *weight};
  return taps - first;
}

// Memory of a filter: the rows that the window's height needs, and rows to convert.
struct Room {
  int64_t* columns;
  float** rows;
  Tap* taps;
  float* kept;  // `height` rows of `padded` floats
  float *sums, *wide;
  uint8_t* staged;
  int64_t padded;

  // `values`: floats per kept row. `widened`: floats of a source row with its border, if it is not a kept row. `most_taps`: of
  // one sum.
  Room(const View& src, const View& dst, int64_t width, int64_t height, int64_t values, int64_t widened,
       int64_t most_taps, Scratch& scratch) {
    // Rows begin cache lines: half of the vectors of other rows would cross one.
    padded = in_lines(values + kTile);
    const int64_t row = in_lines(dst.shape[1] * dst.shape[2] + kTile),
                  widest = std::max(src.shape[1] * src.shape[2], row);
    const auto floats = static_cast<size_t>(padded * height + row + widened + kTile);
    const auto words = static_cast<size_t>(width + height);
    uint8_t* room = scratch.get(words * 8 + kLine + static_cast<size_t>(most_taps) * sizeof(Tap) +
                                floats * sizeof(float) + static_cast<size_t>(widest) * sizeof(float));
    columns = reinterpret_cast<int64_t*>(room);
    rows = reinterpret_cast<float**>(columns + width);
    taps = reinterpret_cast<Tap*>(rows + height);
    const auto end = reinterpret_cast<uintptr_t>(taps + most_taps);
    kept = reinterpret_cast<float*>((end + kLine - 1) / kLine * kLine);
    sums = kept + padded * height;
    wide = sums + row;
    staged = reinterpret_cast<uint8_t*>(wide + widened + kTile);
    // Sums of whole tiles read beyond the end of a row. What lies there must not be subnormal: Intel processors take about
    // 150 cycles for an operation with such a number.
    for (int64_t y = 0; y < height; ++y) std::fill_n(kept + y * padded + values, padded - values, 0.0F);
    std::fill_n(wide, widened + kTile, 0.0F);
  }
  static constexpr int64_t kLine = 64;
  static int64_t in_lines(int64_t floats) { return (floats + kLine / 4 - 1) / (kLine / 4) * (kLine / 4); }
  // Row `y` of the source is kept until row y + height replaces it.
  float* row(int64_t y, int64_t height) const { return kept + y % height * padded; }
};

}  // namespace

bool correlate(const View& src, const Window& window, const View& dst, Scratch& scratch) {
  bool done = false;
  if (!check(src, window, dst, &done)) return false;
  if (done) return true;
  const int64_t channels = src.shape[2], width = dst.shape[1] + window.width - 1, height = window.height;
  const Room room(src, dst, width, height, width * channels, 0, height * window.width, scratch);
  const FloatRows source(src, window, width, room.columns, room.staged);
  const SumRow sum = window.fused ? fused_sums() : tap_sums().row;
  const bool skips = may_skip_zeros(src, window);
  for (int64_t next = 0, y = 0; y < dst.shape[0]; ++y) {
    for (; next < y + height; ++next) source.read(next - window.top, room.row(next, height));  // rows not yet read
    for (int64_t i = 0; i < height; ++i) room.rows[i] = room.row(y + i, height);
    const int64_t taps = list_taps(room.rows, window, channels, skips, room.taps);
    sum({room.taps, taps, dst.shape[1] * channels, room.sums});
    store_row(room.sums, dst, y, room.staged);
  }
  return true;
}

bool correlate_twice(const View& src, const Window& across, const Window& down, const View& dst, Scratch& scratch) {
  bool done = false;
  if (across.height != 1 || down.width != 1 || across.top != 0 || down.left != 0) return false;
  if (across.border == Border::Constant || down.border == Border::Constant) return false;
  if (!check(src, across, dst, &done) || !check(src, down, dst, &done)) return false;
  if (done) return true;
  const int64_t channels = src.shape[2], width = dst.shape[1] + across.width - 1, height = down.height;
  const int64_t count = dst.shape[1] * channels;
  // An image of fewer rows is summed with further ones, which lie beyond the edge and are not stored.
  const int64_t rows = dst.shape[0], kept = height + kRowsTogether - 1;
  const Room room(src, dst, width, kept, count, std::max(width * channels, kRowsTogether * (count + kTile)),
                  across.width, scratch);
  const FloatRows source(src, across, width, room.columns, room.staged);
  const TapSums sums = tap_sums();
  list_taps(&room.wide, across, channels, false, room.taps);
  SumRows together{room.rows, down.weights, height, count, {}};
  for (int r = 0; r < kRowsTogether; ++r) together.out[r] = room.wide + r * (count + kTile);  // after the source's row
  for (int64_t next = 0, done_rows = 0; done_rows < rows; done_rows += kRowsTogether) {
    const int64_t y = std::max<int64_t>(std::min(done_rows, rows - kRowsTogether), 0);  // the last ones may come twice
    for (; next < y + kept; ++next) {
      source.read(border_position(next - down.top, src.shape[0], down.border), room.wide);
      sums.row({room.taps, across.width, count, room.row(next, kept)});
    }
    for (int64_t i = 0; i < kept; ++i) room.rows[i] = room.row(y + i, kept);
    sums.rows(together);
    for (int64_t r = 0; r < std::min<int64_t>(kRowsTogether, rows); ++r)
      store_row(together.out[r], dst, y + r, room.staged);
  }
  return true;
}

bool correlate_sum(const View& src, const Window (&across)[2], const Window (&down)[2], const View& dst,
                   Scratch& scratch) {
  bool done = false;
  int64_t most = 0, high = 0;
  for (int k = 0; k < 2; ++k) {
    const Window &a = across[k], &d = down[k];
    if (a.height != 1 || d.width != 1 || a.top != 0 || d.left != 0) return false;
    if (a.left != a.width / 2 || d.top != d.height / 2 || a.width % 2 == 0 || d.height % 2 == 0) return false;
    if (a.border != Border::Reflect101 || d.border != Border::Reflect101) return false;
    if (!check(src, a, dst, &done) || !check(src, d, dst, &done)) return false;
    most = std::max(most, a.left);
    high = std::max(high, d.height);
  }
  if (done) return true;
  if (sum_in_words(src, across, down, dst, scratch)) return true;
  const int64_t channels = src.shape[2], width = dst.shape[1] + 2 * most, count = dst.shape[1] * channels;
  const int64_t taps_across = across[0].width + across[1].width, taps_down = down[0].height + down[1].height;
  // Two rows are kept for each row of the higher window.
  const Room room(src, dst, width, 2 * high, count, width * channels, taps_across + taps_down, scratch);
  Tap* const joined = room.taps + taps_across;
  const Window source_window{nullptr, 1, 2 * most + 1, 0, most};
  const FloatRows source(src, source_window, width, room.columns, room.staged);
  const SumRow sum = tap_sums().row;
  Tap* const taps[2] = {room.taps, room.taps + across[0].width};
  for (int k = 0; k < 2; ++k) {
    const float* const from = room.wide + (most - across[k].left) * channels;
    list_taps(&from, across[k], channels, false, taps[k]);
  }
  const auto kept = [&](int k, int64_t next) { return room.row(k * high + next % high, 2 * high); };
  for (int64_t next = 0, y = 0; y < dst.shape[0]; ++y) {
    for (; next < y + high; ++next) {
      source.read(border_position(next - high / 2, src.shape[0], Border::Reflect101), room.wide);
      for (int k = 0; k < 2; ++k) sum({taps[k], across[k].width, count, kept(k, next)});
    }
    Tap* tap = joined;
    for (int k = 0; k < 2; ++k)
      for (int64_t i = 0; i < down[k].height; ++i)
        *tap++ = {kept(k, y + high / 2 - down[k].top + i), down[k].weights[i]};
    sum({joined, taps_down, count, room.sums});
    store_row(room.sums, dst, y, room.staged);
  }
  return true;
}

}  // namespace stoker::correlate
