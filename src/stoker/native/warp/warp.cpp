// SPDX-License-Identifier: Apache-2.0
#include "warp/warp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/simd.hpp"
#include "shared/warp_point.hpp"
#include "warp/four_doubles.hpp"

namespace stoker::warp {

namespace {

struct Image {
  const uint8_t* data;
  int64_t height, width, channels;
  int64_t row, pixel, channel;  // strides
};

Image image_of(const View& v) {
  return {v.data, v.shape[0], v.shape[1], v.shape[2], v.stride[0], v.stride[1], v.stride[2]};
}

template <class T>
T load(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store(uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

// ---------------------------------------------------------------- nearest

// Source column and row of each output pixel of one row; -1 means outside (does not occur when clamping).
struct NearestPixels {
  int32_t* x;
  int32_t* y;
  int32_t* offset;  // scratch for as many numbers
};

// Iterate over the output and call row(y, picks) for each of its rows.
template <class Row>
void walk_scale(const Image& src, const double m[6], bool clamp, int64_t width, int64_t height, NearestPixels p,
                Row&& row) {
  double at = m[2] + m[0] * 0.5;
  for (int64_t x = 0; x < width; ++x, at += m[0]) p.x[x] = index_of(at, src.width, clamp);
  at = m[5] + m[4] * 0.5;
  for (int64_t y = 0; y < height; ++y, at += m[4]) {
    std::fill_n(p.y, width, index_of(at, src.height, clamp));
    row(y);
  }
}

// Compute index_of() of `from`, `from` + `step`, ..., in 16.16 fixed point.
template <bool kClamp>
[[gnu::always_inline]] inline void fixed_indices(uint32_t from, uint32_t step, int32_t size, int64_t n, int32_t* to) {
  for (int64_t x = 0; x < n; ++x) {
    const int32_t i = static_cast<int32_t>(from + static_cast<uint32_t>(x) * step) >> 16;
    to[x] = kClamp ? std::clamp(i, 0, size - 1) : (static_cast<uint32_t>(i) < static_cast<uint32_t>(size) ? i : -1);
  }
}

// Compute the offset of each picked pixel from the image's first byte; -1: outside.
[[gnu::always_inline]] inline void find_offsets(const int32_t* x, const int32_t* y, int32_t row, int32_t pixel,
                                                int64_t n, int32_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = (x[i] | y[i]) < 0 ? -1 : y[i] * row + x[i] * pixel;
}

STOKER_WIDE void fixed_indices_wide(uint32_t from, uint32_t step, int32_t size, bool clamp, int64_t n, int32_t* to) {
  clamp ? fixed_indices<true>(from, step, size, n, to) : fixed_indices<false>(from, step, size, n, to);
}
STOKER_WIDE void offsets_wide(const int32_t* x, const int32_t* y, int32_t row, int32_t pixel, int64_t n, int32_t* to) {
  find_offsets(x, y, row, pixel, n, to);
}

void along_fixed(uint32_t from, uint32_t step, int32_t size, bool clamp, int64_t n, int32_t* to) {
  if (has_wide()) return fixed_indices_wide(from, step, size, clamp, n, to);
  clamp ? fixed_indices<true>(from, step, size, n, to) : fixed_indices<false>(from, step, size, n, to);
}

void offsets(const int32_t* x, const int32_t* y, int32_t row, int32_t pixel, int64_t n, int32_t* to) {
  if (has_wide()) return offsets_wide(x, y, row, pixel, n, to);
  find_offsets(x, y, row, pixel, n, to);
}

template <class Row>
void walk_fixed(const Image& src, const double m[6], bool clamp, int64_t width, int64_t height, NearestPixels p,
                Row&& row) {
  // Unsigned, so that wrapping is defined; within the checked bound nothing wraps.
  const uint32_t a0 = to_fixed(m[0]), a1 = to_fixed(m[1]), a3 = to_fixed(m[3]), a4 = to_fixed(m[4]);
  uint32_t x_row = to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), y_row = to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  for (int64_t y = 0; y < height; ++y, x_row += a1, y_row += a4) {
    along_fixed(x_row, a0, static_cast<int32_t>(src.width), clamp, width, p.x);
    along_fixed(y_row, a3, static_cast<int32_t>(src.height), clamp, width, p.y);
    row(y);
  }
}

template <class Row>
void walk_steps(const Image& src, const double m[6], bool clamp, int64_t width, int64_t height, NearestPixels p,
                Row&& row) {
  double x_row = m[2] + m[1] * 0.5 + m[0] * 0.5, y_row = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int64_t y = 0; y < height; ++y, x_row += m[1], y_row += m[4]) {
    double xx = x_row, yy = y_row;
    for (int64_t x = 0; x < width; ++x, xx += m[0], yy += m[3]) {
      p.x[x] = index_of(xx, src.width, clamp);
      p.y[x] = index_of(yy, src.height, clamp);
    }
    row(y);
  }
}

// kBytes is the size of a pixel whose channels are adjacent in both images.
template <int kBytes>
void pick_row(const Image& src, NearestPixels p, const uint8_t* fill, const View& dst, int64_t y) {
  const int64_t width = dst.shape[1], step = dst.stride[1];
  uint8_t* out = dst.data + y * dst.stride[0];
  offsets(p.x, p.y, static_cast<int32_t>(src.row), static_cast<int32_t>(src.pixel), width, p.offset);
  int64_t x = 0;
  if constexpr (kBytes == 3) {
    // Four bytes are moved faster than three. The next pixel writes over the fourth, and the last pixel of the image, after
    // which there may be no memory, comes from a copy.
    const int64_t last = (src.height - 1) * src.row + (src.width - 1) * src.pixel;
    uint8_t at_end[4], outside[4];
    std::memcpy(at_end, src.data + last, 3);
    std::memcpy(outside, fill, 3);
    at_end[3] = outside[3] = 0;
    if (step == 3)
      for (; x + 1 < width; ++x, out += step) {
        const int32_t at = p.offset[x];
        const uint8_t* from = src.data + at;
        if (at < 0) from = outside;
        if (at == last) from = at_end;
        std::memcpy(out, from, 4);
      }
  }
  for (; x < width; ++x, out += step) std::memcpy(out, p.offset[x] < 0 ? fill : src.data + p.offset[x], kBytes);
}

// Copy channel by channel, for images of any size.
void pick_row_apart(const Image& src, NearestPixels p, const uint8_t* fill, const View& dst, int64_t y) {
  const int64_t size = size_of(dst.dtype);
  uint8_t* out = dst.data + y * dst.stride[0];
  for (int64_t x = 0; x < dst.shape[1]; ++x, out += dst.stride[1]) {
    const bool outside = (p.x[x] | p.y[x]) < 0;
    const uint8_t* in = outside ? fill : src.data + p.y[x] * src.row + p.x[x] * src.pixel;
    const int64_t step = outside ? size : src.channel;
    for (int64_t c = 0; c < src.channels; ++c) std::memcpy(out + c * dst.stride[2], in + c * step, size);
  }
}

using PickRow = void (*)(const Image&, NearestPixels, const uint8_t*, const View&, int64_t);

PickRow choose_pick_row(const Image& src, const View& dst) {
  const int64_t size = size_of(dst.dtype);
  const bool together = src.channels == 1 || (src.channel == size && dst.stride[2] == size);
  const bool forward = src.row >= 0 && src.pixel >= 0;
  const bool near = forward && src.height * src.row + src.width * src.pixel <= std::numeric_limits<int32_t>::max();
  switch (together && near ? src.channels * size : 0) {
    case 1: return pick_row<1>;
    case 2: return pick_row<2>;
    case 3: return pick_row<3>;
    case 4: return pick_row<4>;
    case 12: return pick_row<12>;
    case 16: return pick_row<16>;
    default: return pick_row_apart;
  }
}

void nearest(const Image& src, const double m[6], bool clamp, const uint8_t* fill, const View& dst, int32_t* room) {
  const int64_t height = dst.shape[0], width = dst.shape[1];
  const NearestPixels picks{room, room + width, room + 2 * width};
  const PickRow pick = choose_pick_row(src, dst);
  const auto row = [&](int64_t y) { pick(src, picks, fill, dst, y); };
  if (m[1] == 0 && m[3] == 0) return walk_scale(src, m, clamp, width, height, picks, row);
  if (fits_fixed(m, width, height)) return walk_fixed(src, m, clamp, width, height, picks, row);
  walk_steps(src, m, clamp, width, height, picks, row);
}

// ---------------------------------------------------------------- linear

// Narrow the range to the outputs whose coordinate is inside of the source. They form an interval, which is found by
// bisection on exactly the values that the sampling loop computes.
void narrow(const Line& line, int64_t& x0, int64_t& x1) {
  const bool rising = line.step >= 0;
  const auto first = [&](int64_t lo, int64_t hi, auto&& reached) {
    while (lo < hi) {
      const int64_t mid = lo + (hi - lo) / 2;
      if (reached(line.at(mid))) hi = mid;
      else lo = mid + 1;
    }
    return lo;
  };
  const double limit = line.limit;
  const auto entered = [&](double v) { return rising ? v >= 0.0 : v < limit; };
  const auto left = [&](double v) { return rising ? !(v < limit) : !(v >= 0.0); };
  x0 = first(x0, x1, entered);
  x1 = first(x0, x1, left);
}

// kChannels 0: any number. kPacked: channels are adjacent in both images.
template <class T, int kChannels, bool kPacked>
[[gnu::always_inline]] inline void sample_span(const Image& src, const Line& xs, const Line& ys, int64_t x0, int64_t x1,
                                               uint8_t* out, const View& dst) {
  const int64_t channels = kChannels ? kChannels : src.channels;
  const int64_t in_step = kPacked ? int64_t{sizeof(T)} : src.channel;
  const int64_t out_step = kPacked ? int64_t{sizeof(T)} : dst.stride[2];
  for (int64_t x = x0; x < x1; ++x) {
    const Neighbours h = neighbours(xs.at(x), xs.limit, src.width - 1, src.pixel);
    const Neighbours v = neighbours(ys.at(x), ys.limit, src.height - 1, src.row);
    const uint8_t* top = src.data + v.a;
    const uint8_t* bottom = src.data + v.b;
    uint8_t* to = out + x * dst.stride[1];
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = c * in_step;
      const double upper = lerp(load<T>(top + h.a + at), load<T>(top + h.b + at), h.weight);
      const double lower = lerp(load<T>(bottom + h.a + at), load<T>(bottom + h.b + at), h.weight);
      store(to + c * out_step, from_interpolated<T>(lerp(upper, lower, v.weight)));
    }
  }
}

#if STOKER_FOUR_DOUBLES

// Neighbours of a chunk of outputs along one axis, as byte offsets below 2 GiB, so that vectors hold them.
constexpr int kChunk = 64;
struct ChunkNeighbours {
  alignas(32) int32_t a[kChunk], b[kChunk];
  alignas(32) double weight[kChunk];
};

// Compute neighbours() of outputs x0 .. x0 + n - 1, in whole vectors. `last` and `stride` are those of neighbours().
STOKER_WIDE inline void find_neighbours(const Line& line, int64_t x0, int n, int32_t last, int32_t stride,
                                        ChunkNeighbours* to) {
  FourNeighbours four(line, static_cast<double>(x0) + 0.5, last, stride);
  for (int k = 0; k < n; k += 4) four.next(to->a + k, to->b + k, to->weight + k);
}

// Whether all outputs of a chunk have four neighbours, of which four bytes can be read. Positions are monotonic along an
// axis, so that those at both ends decide.
inline bool is_inside(const ChunkNeighbours& h, const ChunkNeighbours& v, int n, const Image& src) {
  const auto both = [n](const ChunkNeighbours& of, int64_t stride) {
    return of.b[0] - of.a[0] == stride && of.b[n - 1] - of.a[n - 1] == stride;
  };
  const int64_t most = int64_t{std::max(h.a[0], h.a[n - 1])} + std::max(v.a[0], v.a[n - 1]);
  return both(h, src.pixel) && both(v, src.row) &&
         most + src.row + src.pixel < (src.height - 1) * src.row + (src.width - 1) * src.pixel;
}

// sample_span() with the channels of a pixel in one register and the same operations on the same doubles. Two loops,
// because the latency from a coordinate to its pixel is too long for the processor to hide by overlapping whole pixels.
template <int kChannels>
STOKER_WIDE void sample_bytes_wide(const Image src, const Line xs, const Line ys, int64_t x0, int64_t x1, uint8_t* out,
                                   int64_t out_step) {  // by value: a written byte might alias a reference
  ChunkNeighbours h, v;
  alignas(32) uint32_t at[kChunk];  // offsets of the first of four neighbours; in sum they may need all 32 bits
  const uint8_t* last = src.data + (src.height - 1) * src.row + (src.width - 1) * src.pixel;
  const auto last_x = static_cast<int32_t>(src.width - 1), last_y = static_cast<int32_t>(src.height - 1);
  for (; x0 < x1; x0 += kChunk) {
    const int n = static_cast<int>(std::min<int64_t>(kChunk, x1 - x0));
    find_neighbours(xs, x0, n, last_x, static_cast<int32_t>(src.pixel), &h);
    find_neighbours(ys, x0, n, last_y, static_cast<int32_t>(src.row), &v);
    uint8_t* to = out + x0 * out_step;
    int k = 0;
    if (out_step == kChannels && is_inside(h, v, n, src)) {
      // Four bytes are stored faster than three. The next pixel writes over the fourth; the span's last one has none.
      const int count = x0 + n == x1 ? n - 1 : n;
      for (int i = 0; i < count; ++i) at[i] = static_cast<uint32_t>(h.a[i]) + static_cast<uint32_t>(v.a[i]);
      for (; k < count; ++k, to += kChannels) {
        const uint8_t* top = src.data + at[k];
        const uint32_t bytes = interpolated<4>({top, top + src.row, 0, src.pixel}, h.weight[k], v.weight[k]);
        std::memcpy(to, &bytes, 4);
      }
    }
    for (; k < n; ++k, to += out_step) {
      interpolate<kChannels>({src.data + v.a[k], src.data + v.b[k], h.a[k], h.b[k]}, last, h.weight[k], v.weight[k],
                             to);
    }
  }
}

// Whether the offsets of all pixels fit into 32 bits.
bool fits_offsets(const Image& src) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return src.row >= 0 && src.pixel >= 0 && src.row <= kMost / src.height && src.pixel <= kMost / src.width;
}

#endif

template <class T>
void sample(const Image& src, const Line& xs, const Line& ys, int64_t x0, int64_t x1, uint8_t* out, const View& dst) {
  const bool packed = src.channels == 1 || (src.channel == int64_t{sizeof(T)} && dst.stride[2] == src.channel);
#if STOKER_FOUR_DOUBLES
  if constexpr (std::is_same_v<T, uint8_t>) {
    const bool wide = packed && has_wide() && fits_offsets(src);
    if (wide && src.channels == 3) return sample_bytes_wide<3>(src, xs, ys, x0, x1, out, dst.stride[1]);
    if (wide && src.channels == 4) return sample_bytes_wide<4>(src, xs, ys, x0, x1, out, dst.stride[1]);
  }
#endif
  if (packed && src.channels == 1) return sample_span<T, 1, true>(src, xs, ys, x0, x1, out, dst);
  if (packed && src.channels == 3) return sample_span<T, 3, true>(src, xs, ys, x0, x1, out, dst);
  if (packed && src.channels == 4) return sample_span<T, 4, true>(src, xs, ys, x0, x1, out, dst);
  sample_span<T, 0, false>(src, xs, ys, x0, x1, out, dst);
}

template <class T>
void fill_span(uint8_t* out, int64_t x0, int64_t x1, const T* fill, const View& dst) {
  for (int64_t x = x0; x < x1; ++x)
    for (int64_t c = 0; c < dst.shape[2]; ++c) store(out + x * dst.stride[1] + c * dst.stride[2], fill[c]);
}

constexpr int64_t kBandRows = 16;     // of the output
constexpr int64_t kTileColumns = 64;  // at least

// Return the columns of a tile. A whole row of a turned image takes samples from more rows of the source than the cache and the
// translation buffer hold until the next row; a tile spans few of them.
int64_t tile_columns(const double m[6]) {
  const double rows = std::abs(m[3]) * static_cast<double>(kTileColumns);  // of the source, across the least tile
  const double tiles = rows > 0 ? static_cast<double>(kBandRows) / rows : 1e6;
  return kTileColumns * static_cast<int64_t>(std::clamp(tiles, 1.0, 1e6));
}

// Sample the outputs tile by tile, `kBandRows` rows high.
template <class T>
void linear_rows(const Image& src, const double m[6], bool clamp, const T* fill, const View& dst) {
  struct Row {
    Line xs, ys;
    int64_t x0, x1;  // the outputs that are sampled
  };
  Row rows[kBandRows];
  const auto width = static_cast<double>(src.width), height = static_cast<double>(src.height);
  const int64_t columns = tile_columns(m);
  for (int64_t y0 = 0; y0 < dst.shape[0]; y0 += kBandRows) {
    const int64_t count = std::min(kBandRows, dst.shape[0] - y0);
    for (int64_t r = 0; r < count; ++r) {
      const double yin = static_cast<double>(y0 + r) + 0.5;
      Row& row = rows[r];
      row = {{m[0], m[1] * yin, m[2], width}, {m[3], m[4] * yin, m[5], height}, 0, dst.shape[1]};
      if (clamp) continue;
      narrow(row.xs, row.x0, row.x1);
      narrow(row.ys, row.x0, row.x1);
      uint8_t* out = dst.data + (y0 + r) * dst.stride[0];
      fill_span(out, 0, row.x0, fill, dst);
      fill_span(out, row.x1, dst.shape[1], fill, dst);
    }
    for (int64_t x = 0; x < dst.shape[1]; x += columns)
      for (int64_t r = 0; r < count; ++r) {
        const int64_t begin = std::max(x, rows[r].x0), end = std::min(x + columns, rows[r].x1);
        if (begin < end) sample<T>(src, rows[r].xs, rows[r].ys, begin, end, dst.data + (y0 + r) * dst.stride[0], dst);
      }
  }
}

template <class T>
void run(const View& src, const double m[6], bool linear, const double* fill, int64_t fill_step, const View& dst,
         Scratch& scratch) {
  const Image image = image_of(src);
  const int64_t indices = linear ? 0 : 3 * dst.shape[1] * int64_t{sizeof(int32_t)};
  uint8_t* room = scratch.get(static_cast<size_t>(indices + dst.shape[2] * int64_t{sizeof(T)}));
  auto* values = reinterpret_cast<T*>(room + indices);
  for (int64_t c = 0; c < dst.shape[2]; ++c) values[c] = to_type<T>(fill ? fill[c * fill_step] : 0.0);
  if (image.width <= 0 || image.height <= 0) {
    for (int64_t y = 0; y < dst.shape[0]; ++y) fill_span(dst.data + y * dst.stride[0], 0, dst.shape[1], values, dst);
    return;
  }
  if (linear) return linear_rows<T>(image, m, !fill, values, dst);
  nearest(image, m, !fill, room + indices, dst, reinterpret_cast<int32_t*>(room));
}

}  // namespace

bool can_sample(const View& src, const double m[6], const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != dst.dtype || src.shape[2] != dst.shape[2]) return false;
  for (int i = 0; i < 6; ++i)
    if (!std::isfinite(m[i])) return false;
  for (const int64_t n : {src.shape[0], src.shape[1], dst.shape[0], dst.shape[1]})
    if (n > std::numeric_limits<int32_t>::max()) return false;
  switch (src.dtype) {
    case DType::U8:
    case DType::U16:
    case DType::I16:
    case DType::I32:
    case DType::F32: return true;
    default: return false;
  }
}

bool affine(const View& src, const double m[6], bool linear, const double* fill, int64_t fill_step, const View& dst,
            Scratch& scratch) {
  if (!can_sample(src, m, dst)) return false;
  if (dst.shape[0] <= 0 || dst.shape[1] <= 0 || dst.shape[2] <= 0) return true;
  switch (src.dtype) {
    case DType::U8: run<uint8_t>(src, m, linear, fill, fill_step, dst, scratch); return true;
    case DType::U16: run<uint16_t>(src, m, linear, fill, fill_step, dst, scratch); return true;
    case DType::I16: run<int16_t>(src, m, linear, fill, fill_step, dst, scratch); return true;
    case DType::I32: run<int32_t>(src, m, linear, fill, fill_step, dst, scratch); return true;
    case DType::F32: run<float>(src, m, linear, fill, fill_step, dst, scratch); return true;
    default: return false;  // can_sample() excludes other types
  }
}

}  // namespace stoker::warp
