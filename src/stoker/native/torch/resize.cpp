// SPDX-License-Identifier: Apache-2.0
#include "torch/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "base/simd.hpp"
#include "torch/pick_bytes.hpp"
#include "torch/resize_sums.hpp"
#include "torch/resize_taps.hpp"
#include "torch/resize_wide.hpp"

namespace stoker::torch_resize {

namespace {

constexpr int64_t kSlack = 64;  // bytes past the end of a row that may be read and written
static_assert(kWideRows <= kRows && kWideSlack <= kSlack);

int32_t low(int32_t pair) { return static_cast<int16_t>(pair & 0xffff); }
int32_t high(int32_t pair) { return pair >> 16; }
uint8_t byte(int32_t sum, int precision) { return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255)); }

// Filter one row of `channels` bytes per pixel horizontally, for the outputs [first, last).
void across_plain(const Taps& taps, const uint8_t* row, int64_t channels, int64_t first, int64_t last, uint8_t* to) {
  for (int64_t x = first; x < last; ++x) {
    const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * channels;
    const int32_t* pair = taps.pairs.data() + x * taps.most;
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = taps.half();
      for (int64_t k = 0; k < taps.most; ++k) {
        const uint8_t* p = from + 2 * k * channels + c;
        sum += p[0] * low(pair[k]);
        if (high(pair[k])) sum += p[channels] * high(pair[k]);
      }
      *to++ = byte(sum, taps.precision);
    }
  }
}

// Compute one output row from source rows `pitch` bytes apart; `last` is the last row in memory.
void down_plain(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n, uint8_t* to) {
  const int32_t* pair = taps.pairs.data() + y * taps.most;
  const int64_t first = taps.start[static_cast<size_t>(y)];
  for (int64_t i = 0; i < n; ++i) {
    int32_t sum = taps.half();
    for (int64_t k = 0; k < taps.most; ++k) {
      const int64_t a = std::min(first + 2 * k, last), b = std::min(a + 1, last);
      sum += rows[a * pitch + i] * low(pair[k]) + rows[b * pitch + i] * high(pair[k]);
    }
    to[i] = byte(sum, taps.precision);
  }
}

#if STOKER_RESIZE_SUMS

// Filter kRows rows of three channels horizontally. `kMost` pairs, or any number (0).
template <int kPixel, int kMost>
STOKER_WIDE void across3(const Taps& taps, const uint8_t* const* rows, int64_t first, int64_t last,
                         uint8_t* const* to) {
  const int64_t most = kMost ? kMost : taps.most;
  const int32_t half = taps.half();
  const int precision = taps.precision;
  const int32_t* pair = taps.pairs.data() + first * most;
  const int32_t* const start = taps.start.data();
  for (int64_t x = first; x < last; ++x, pair += most) {
    int64_t at = static_cast<int64_t>(start[x]) * kPixel;
    PixelSums<kPixel> sums(half);
    int64_t k = 0;
    for (; k + 1 < most; k += 2, at += 4 * kPixel) sums.add_four(rows, at, pair + k);
    if (k < most) sums.add(rows, at, pair[k]);
    sums.store(precision, to, 3 * (x - first));
  }
}

template <int kPixel>
void across3_any(const Taps& taps, const uint8_t* const* rows, int64_t first, int64_t last, uint8_t* const* to) {
  switch (taps.most) {
    case 1: return across3<kPixel, 1>(taps, rows, first, last, to);
    case 2: return across3<kPixel, 2>(taps, rows, first, last, to);
    case 3: return across3<kPixel, 3>(taps, rows, first, last, to);
    case 4: return across3<kPixel, 4>(taps, rows, first, last, to);
    case 5: return across3<kPixel, 5>(taps, rows, first, last, to);
    case 6: return across3<kPixel, 6>(taps, rows, first, last, to);
    default: return across3<kPixel, 0>(taps, rows, first, last, to);
  }
}

// Compute one output row from pairs of rows. 64 bytes past the end of rows and result may be read and written.
template <int kMost>
STOKER_WIDE void down_vectors(const uint8_t* const* rows, const int32_t* pairs, const Taps& taps, int64_t n,
                              uint8_t* to) {
  const int64_t most = kMost ? kMost : taps.most;
  const int32_t half = taps.half();
  const int precision = taps.precision;
  for (int64_t i = 0; i < n; i += kColumns) {
    ColumnSums sums(half);
    for (int64_t k = 0; k < most; ++k) sums.add(rows[2 * k] + i, rows[2 * k + 1] + i, pairs[k]);
    sums.store(precision, to + i);
  }
}

void down_any(const uint8_t* const* rows, const int32_t* pairs, const Taps& taps, int64_t n, uint8_t* to) {
  switch (taps.most) {
    case 1: return down_vectors<1>(rows, pairs, taps, n, to);
    case 2: return down_vectors<2>(rows, pairs, taps, n, to);
    case 3: return down_vectors<3>(rows, pairs, taps, n, to);
    case 4: return down_vectors<4>(rows, pairs, taps, n, to);
    case 5: return down_vectors<5>(rows, pairs, taps, n, to);
    case 6: return down_vectors<6>(rows, pairs, taps, n, to);
    default: return down_vectors<0>(rows, pairs, taps, n, to);
  }
}

#endif

// Compute one output row; `each` has room for the addresses of the source rows.
void down(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n,
          const uint8_t** each, uint8_t* to) {
#if STOKER_RESIZE_SUMS
  if (has_wide()) {
    const int32_t* pairs = taps.pairs.data() + y * taps.most;
    const int64_t first = taps.start[static_cast<size_t>(y)];
    for (int64_t k = 0; k < 2 * taps.most; ++k) each[k] = rows + std::min(first + k, last) * pitch;
    if (has_wide_resize()) return down_wide(each, pairs, taps.most, taps.precision, n, to);
    return down_any(each, pairs, taps, n, to);
  }
#endif
  down_plain(taps, y, rows, pitch, last, n, to);
}

// Copy a row of the source as pixels of `pixel` bytes: as many as there are channels, or those of the source.
void copy_row(const View& src, int64_t y, int64_t pixel, uint8_t* to) {
  const uint8_t* row = src.data + y * src.stride[0];
  const int64_t width = src.shape[1], channels = src.shape[2];
  if (src.stride[2] == 1 && src.stride[1] == pixel) {
    std::memcpy(to, row, static_cast<size_t>((width - 1) * pixel + channels));
    return;
  }
  if (src.stride[2] == 1 && src.stride[1] == 4 && channels == 3) {  // Pillow's memory has four bytes per pixel
    if (has_wide_resize()) return drop_fourth_wide(row, width, to);
    for (int64_t x = 0; x + 1 < width; ++x) std::memcpy(to + 3 * x, row + 4 * x, 4);  // the fourth is overwritten
    std::memcpy(to + 3 * (width - 1), row + 4 * (width - 1), 3);
    return;
  }
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < channels; ++c) *to++ = row[x * src.stride[1] + c * src.stride[2]];
}

bool fits(const View& src, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != dst.dtype || src.shape[2] != dst.shape[2]) return false;
  return src.elements() > 0 && dst.elements() > 0;
}

// Source positions [first, last) that the outputs [first, last) read.
std::pair<int64_t, int64_t> read_by(const Taps& taps, int64_t in, int64_t first, int64_t last) {
  int64_t end = 0;
  for (int64_t i = first; i < last; ++i) end = std::max(end, taps.start[static_cast<size_t>(i)] + 2 * taps.most);
  return {taps.start[static_cast<size_t>(first)], std::min(end, in)};
}

}  // namespace

struct Resize::State {
  Sizes sizes;
  bool wide, tall;  // columns, rows change
  Taps horizontal, vertical;
  Region needed;
  Groups groups;
  Isa made_for = isa();
  explicit State(const Sizes& s)
      : sizes(s),
        wide(s.width != s.out_width),
        tall(s.height != s.out_height),
        horizontal(s.filter, s.smooth, wide ? s.width : 1, wide ? s.out_width : 1),
        vertical(s.filter, s.smooth, tall ? s.height : 1, tall ? s.out_height : 1),
        needed(s.wanted) {
    if (wide) std::tie(needed.x0, needed.x1) = read_by(horizontal, s.width, s.wanted.x0, s.wanted.x1);
    if (tall) std::tie(needed.y0, needed.y1) = read_by(vertical, s.height, s.wanted.y0, s.wanted.y1);
    if (wide && s.channels == 3 && has_wide_resize())
      groups = Groups(horizontal, s.wanted.x0, s.wanted.x1 - s.wanted.x0, needed.x0);
    for (int32_t& start : horizontal.start) start -= static_cast<int32_t>(wide ? needed.x0 : 0);
    for (int32_t& start : vertical.start) start -= static_cast<int32_t>(tall ? needed.y0 : 0);
  }

  int64_t columns() const { return needed.x1 - needed.x0; }
  int64_t rows() const { return needed.y1 - needed.y0; }
  int64_t out_columns() const { return sizes.wanted.x1 - sizes.wanted.x0; }

  // Rows that the horizontal pass filters together.
  int64_t rows_at_once() const {
    if (groups.outputs > 0) return kWideRows;
    return reads_pixels_of_four() ? kRows : 1;
  }

  // Whether the horizontal pass can also read pixels of four bytes, which Pillow's memory has.
  bool reads_pixels_of_four() const {
#if STOKER_RESIZE_SUMS
    return wide && sizes.channels == 3 && groups.outputs == 0 && made_for != Isa::Plain;
#else
    return false;
#endif
  }

  // Bytes of a source row with pixels of `pixel` bytes that the horizontal pass may read.
  int64_t reach(int64_t pixel) const {
    return std::max(groups.reach, (columns() + 2 * horizontal.most) * pixel + kSlack);
  }

  // Filter rows_at_once() rows. Pixels have as many bytes as channels, or four if these can be read.
  void filter_rows(const uint8_t* const* rows, int64_t pixel, uint8_t* const* to) const {
    if (groups.outputs > 0) return across_wide(groups, horizontal.most, horizontal.precision, rows, to);
#if STOKER_RESIZE_SUMS
    if (reads_pixels_of_four()) {
      if (pixel == 4) return across3_any<4>(horizontal, rows, sizes.wanted.x0, sizes.wanted.x1, to);
      return across3_any<3>(horizontal, rows, sizes.wanted.x0, sizes.wanted.x1, to);
    }
#endif
    across_plain(horizontal, rows[0], pixel, sizes.wanted.x0, sizes.wanted.x1, to[0]);
  }

  // Filter the source horizontally, or copy it. lines: rows_at_once() rows of `room` bytes.
  void filter_source(const View& src, uint8_t* lines, int64_t room, int64_t pixel, uint8_t* middle,
                     int64_t pitch) const {
    const int64_t at_once = rows_at_once(), last = rows() - 1, step = src.stride[0];
    const int64_t length = (columns() - 1) * pixel + sizes.channels;
    // Rows are read in place if as many bytes as the filter may read follow in the image's memory.
    const bool contiguous = src.stride[2] == 1 && src.stride[1] == pixel && step >= length;
    const uint8_t* from[kRows];
    uint8_t* to[kRows];
    for (int64_t y = 0; y <= last; y += at_once) {
      for (int64_t i = 0; i < at_once; ++i) {  // the last rows are repeated
        const int64_t row = std::min(y + i, last);
        const bool in_place = contiguous && row * step + room <= last * step + length;
        to[i] = middle + row * pitch;
        from[i] = in_place ? src.data + row * step : lines + i * room;
        if (!wide) copy_row(src, row, pixel, to[i]);
        else if (!in_place) copy_row(src, row, pixel, lines + i * room);
      }
      if (wide) filter_rows(from, pixel, to);
    }
  }
};

Resize::Resize(const Sizes& sizes) : state_(std::make_unique<State>(sizes)) {}
Resize::~Resize() = default;
const Region& Resize::needed() const { return state_->needed; }
bool Resize::is_for(const Sizes& sizes) const { return state_->sizes == sizes && state_->made_for == isa(); }

// Memory of a run: addresses of rows, lines for rows that cannot be read in place, rows between the passes, one row of
// the result.
Resize::ByRows::ByRows(const Resize& resize, Scratch& scratch, int64_t line_bytes) : resize_(resize) {
  const State& s = *resize.state_;
  pitch_ = s.out_columns() * s.sizes.channels + kSlack;
  const auto addresses = static_cast<int64_t>(sizeof(uint8_t*)) * 2 * s.vertical.most;
  uint8_t* const memory = scratch.get(static_cast<size_t>(addresses + line_bytes + (s.rows() + 1) * pitch_));
  each_ = reinterpret_cast<const uint8_t**>(memory);
  lines_ = memory + addresses;
  middle_ = lines_ + line_bytes;
  result_ = middle_ + s.rows() * pitch_;
}

Resize::ByRows::ByRows(const Resize& resize, Scratch& scratch) : ByRows(resize, scratch, 0) {}

int64_t Resize::ByRows::rows_at_once() const { return resize_.state_->rows_at_once(); }
int64_t Resize::ByRows::reach() const { return resize_.state_->reach(resize_.state_->sizes.channels); }

void Resize::ByRows::take(const uint8_t* pixels, int64_t pitch, int64_t count) {
  const State& s = *resize_.state_;
  const int64_t at_once = s.rows_at_once(), channels = s.sizes.channels, width = s.columns() * channels;
  const int64_t last = std::min(count, s.rows() - taken_) - 1;
  const uint8_t* from[kRows];
  uint8_t* to[kRows];
  for (int64_t y = 0; y <= last; y += at_once) {
    for (int64_t i = 0; i < at_once; ++i) {  // the last rows are repeated
      const int64_t row = std::min(y + i, last);
      from[i] = pixels + row * pitch;
      to[i] = middle_ + (taken_ + row) * pitch_;
      if (!s.wide) std::memcpy(to[i], from[i], static_cast<size_t>(width));
    }
    if (s.wide) s.filter_rows(from, channels, to);
  }
  taken_ += last + 1;
}

void Resize::ByRows::finish(const Sink& sink) const {
  const State& s = *resize_.state_;
  const Region& wanted = s.sizes.wanted;
  if (!s.tall) return sink.take(sink.to, 0, wanted.y1 - wanted.y0, middle_, pitch_);
  const int64_t values = s.out_columns() * s.sizes.channels;
  for (int64_t y = wanted.y0; y < wanted.y1; ++y) {
    down(s.vertical, y, middle_, pitch_, s.rows() - 1, values, each_, result_);
    sink.take(sink.to, y - wanted.y0, y - wanted.y0 + 1, result_, pitch_);
  }
}

bool Resize::run(const View& src, const Sink& sink, Scratch& scratch) const {
  const State& s = *state_;
  const int64_t channels = s.sizes.channels;
  if (src.rank != 3 || src.dtype != DType::U8 || src.shape[0] != s.rows() || src.shape[1] != s.columns() ||
      src.shape[2] != channels)
    return false;
  const int64_t pixel = s.reads_pixels_of_four() && src.stride[2] == 1 && src.stride[1] == 4 ? 4 : channels;
  const int64_t room = s.reach(pixel), line_bytes = s.rows_at_once() * room;
  const ByRows rows(*this, scratch, line_bytes);
  if (s.wide) std::memset(rows.lines_, 0, static_cast<size_t>(line_bytes));
  s.filter_source(src, rows.lines_, room, pixel, rows.middle_, rows.pitch_);
  rows.finish(sink);
  return true;
}

const Resize& ResizeCache::get(const Sizes& sizes) {
  constexpr size_t kKept = 8;
  const auto found = std::find_if(latest_.begin(), latest_.end(), [&](const auto& r) { return r->is_for(sizes); });
  if (found != latest_.end()) {
    std::rotate(latest_.begin(), found, found + 1);
  } else {
    if (latest_.size() == kKept) latest_.pop_back();
    latest_.insert(latest_.begin(), std::make_unique<Resize>(sizes));
  }
  return *latest_.front();
}

bool resize(const View& src, Filter filter, bool smooth, const View& dst, ResizeCache& cache, Scratch& scratch) {
  if (!fits(src, dst) || src.dtype != DType::U8 || dst.stride[2] != 1 || dst.stride[1] != dst.shape[2]) return false;
  const Resize& r = cache.get({src.shape[0],
                               src.shape[1],
                               src.shape[2],
                               filter,
                               smooth,
                               dst.shape[0],
                               dst.shape[1],
                               {0, 0, dst.shape[1], dst.shape[0]}});
  View to = dst;
  const Sink sink{[](void* view, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
                    const View& out = *static_cast<View*>(view);
                    for (int64_t y = y0; y < y1; ++y, pixels += pitch)
                      std::memcpy(out.data + y * out.stride[0], pixels,
                                  static_cast<size_t>(out.shape[1] * out.shape[2]));
                  },
                  &to};
  View from = src;
  const Region& needed = r.needed();  // all, except where no output reads the last columns or rows
  from.data += needed.y0 * src.stride[0] + needed.x0 * src.stride[1];
  from.shape[0] = needed.y1 - needed.y0;
  from.shape[1] = needed.x1 - needed.x0;
  return r.run(from, sink, scratch);
}

// Return the nearest of `in` places for place i of `out`.
static int64_t nearest(bool exact, int64_t i, int64_t in, int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  if (exact) return std::min<int64_t>(static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * scale)), in - 1);
  if (in == out) return i;
  if (out == 2 * in) return i >> 1;
  return std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1);
}

// The same for one channel of bytes. Equal rows are copied.
static void pick_rows(const View& src, bool exact, const View& dst, Scratch& scratch) {
  auto* columns = reinterpret_cast<int32_t*>(scratch.get(static_cast<size_t>(dst.shape[1]) * sizeof(int32_t)));
  for (int64_t x = 0; x < dst.shape[1]; ++x)
    columns[x] = static_cast<int32_t>(nearest(exact, x, src.shape[1], dst.shape[1]));
  int64_t before = -1;
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    uint8_t* const to = dst.data + y * dst.stride[0];
    const int64_t from = nearest(exact, y, src.shape[0], dst.shape[0]);
    if (from == before) std::memcpy(to, to - dst.stride[0], static_cast<size_t>(dst.shape[1]));
    else pick_bytes(src.data + from * src.stride[0], src.shape[1], columns, dst.shape[1], to);
    before = from;
  }
}

bool pick(const View& src, bool exact, const View& dst, Scratch& scratch) {
  if (!fits(src, dst)) return false;
  const auto index = [exact](int64_t i, int64_t in, int64_t out) { return nearest(exact, i, in, out); };
  if (size_of(src.dtype) == 1 && src.shape[2] == 1 && src.stride[1] == 1 && dst.stride[1] == 1 &&
      src.shape[1] <= std::numeric_limits<int32_t>::max()) {
    pick_rows(src, exact, dst, scratch);
    return true;
  }
  auto* columns = reinterpret_cast<int64_t*>(scratch.get(static_cast<size_t>(dst.shape[1]) * sizeof(int64_t)));
  for (int64_t x = 0; x < dst.shape[1]; ++x) columns[x] = index(x, src.shape[1], dst.shape[1]) * src.stride[1];
  const auto size = static_cast<size_t>(size_of(src.dtype));
  const bool together =
      size == 1 && src.shape[2] == 3 && src.stride[2] == 1 && dst.stride[2] == 1 && dst.stride[1] == 3;
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    const uint8_t* row = src.data + index(y, src.shape[0], dst.shape[0]) * src.stride[0];
    uint8_t* to = dst.data + y * dst.stride[0];
    if (together) {
      for (int64_t x = 0; x < dst.shape[1]; ++x) std::memcpy(to + 3 * x, row + columns[x], 3);
      continue;
    }
    for (int64_t x = 0; x < dst.shape[1]; ++x)
      for (int64_t c = 0; c < dst.shape[2]; ++c)
        std::memcpy(to + x * dst.stride[1] + c * dst.stride[2], row + columns[x] + c * src.stride[2], size);
  }
  return true;
}

}  // namespace stoker::torch_resize
