// SPDX-License-Identifier: Apache-2.0
// Affine warps of tensors on a GPU, with the results of warp/warp.hpp, and the sums of their gradients. A block has a row
// of an output image.
//
// A GPU cannot report a matrix without waiting for it: an image whose matrix is not finite becomes the fill value.
#pragma once
#include "device/own.cuh"
#include "device/stage_warp.cuh"
#include "shared/device.cuh"
#include "shared/warp_point.hpp"
#include "shared/xmath.hpp"

namespace stoker::warp {

constexpr uint32_t kMaxThreads = 256;
enum : uint64_t { kLinear = 1, kClamp = 2, kFromLast = 4, kToLast = 8 };  // flags; Last: neighbouring channels

// Numbers of a call, two of 32 bits in each parameter of a kernel.
struct Call {
  uint64_t from, to, matrices, fills;
  double fill;
  int64_t from_height, from_width, height, width, channels;
  uint64_t flags;

  Call(uint64_t from_at, uint64_t to_at, uint64_t matrices_at, uint64_t fills_at, uint64_t fill_bits,
       uint64_t from_size, uint64_t to_size, uint64_t channels_flags)
      : from(from_at),
        to(to_at),
        matrices(matrices_at),
        fills(fills_at),
        fill(xm::detail::from_bits(fill_bits)),
        from_height(high(from_size)),
        from_width(low(from_size)),
        height(high(to_size)),
        width(low(to_size)),
        channels(high(channels_flags)),
        flags(channels_flags) {}
  static int64_t high(uint64_t x) { return static_cast<int64_t>(x >> 32); }
  static int64_t low(uint64_t x) { return static_cast<int64_t>(x & 0xFFFFFFFFu); }
  bool has(uint64_t flag) const { return (flags & flag) != 0; }
};

// The source of a block's row.
template <class T>
stage::AffineSlot slot_of(const Call& call, int64_t image) {
  const int64_t item = sizeof(T), height = call.from_height, width = call.from_width;
  const bool last = call.has(kFromLast);
  stage::AffineSlot s{};
  s.source = {call.from + static_cast<uint64_t>(image * height * width * call.channels * item),
              height,
              width,
              call.channels,
              0,
              last ? call.channels * item : item,
              last ? item : height * width * item};
  s.source.row = width * s.source.pixel;
  for (int i = 0; i < 6; ++i) s.matrix[i] = reinterpret_cast<const double*>(call.matrices)[image * 6 + i];
  s.clamp = call.has(kClamp);
  s.height = call.height;
  s.width = call.width;
  return s;
}

// A block's row of the output.
template <class T>
struct OutputRow {
  uint8_t* data;
  int64_t pixel, channel;
  const Call& call;

  OutputRow(const Call& c, int64_t row) : call(c) {
    const bool last = c.has(kToLast);
    const int64_t item = sizeof(T), image = own::quotient(row, c.height), y = row - image * c.height;
    pixel = last ? c.channels * item : item;
    channel = last ? item : c.height * c.width * item;
    data = reinterpret_cast<uint8_t*>(c.to) + image * c.height * c.width * c.channels * item + y * c.width * pixel;
  }
  void put(int64_t x, int64_t c, T value) const { *reinterpret_cast<T*>(data + x * pixel + c * channel) = value; }
  void fill(int64_t x) const {
    const auto* const fills = reinterpret_cast<const double*>(call.fills);
    for (int64_t c = 0; c < call.channels; ++c) put(x, c, to_type<T>(fills ? fills[c] : call.fill));
  }
};

template <class T>
void linear_pixel(const stage::WarpReader<T>& reader, const OutputRow<T>& row, int64_t y, int64_t x) {
  const double* const m = reader.s.matrix;
  const Line across{m[0], m[1] * (static_cast<double>(y) + 0.5), m[2], static_cast<double>(reader.s.source.width)};
  const Line down{m[3], m[4] * (static_cast<double>(y) + 0.5), m[5], static_cast<double>(reader.s.source.height)};
  const double vx = across.at(x), vy = down.at(x);
  if (!row.call.has(kClamp) && !(vx >= 0.0 && vx < across.limit && vy >= 0.0 && vy < down.limit)) return row.fill(x);
  if (row.call.channels == 3) {
    T values[3];
    reader.template linear<3>(y, x, 0, values);
    for (int c = 0; c < 3; ++c) row.put(x, c, values[c]);
    return;
  }
  for (int64_t c = 0; c < row.call.channels; ++c) {
    T value;
    reader.template linear<1>(y, x, c, &value);
    row.put(x, c, value);
  }
}

template <class T>
void nearest_pixel(const stage::Source& from, const OutputRow<T>& row, int64_t x, int32_t px, int32_t py) {
  if ((px | py) < 0) return row.fill(x);
  const uint8_t* const at = stage::array_at<uint8_t>(from.data) + py * from.row + px * from.pixel;
  for (int64_t c = 0; c < row.call.channels; ++c) row.put(x, c, stage::load_at<T>(at + c * from.channel));
}

struct Walked {
  int32_t at[2][kMaxThreads];  // source columns and rows of the pixels that the block computes
};

// Nearest sampling by steps. Positions are accumulated as in Pillow, by one thread for each axis. A scale is the case of
// steps of zero across.
template <class T>
void walk_row(const stage::AffineSlot& s, const OutputRow<T>& row, int64_t y) {
  STOKER_SHARED(Walked, walked);
  const double* const m = s.matrix;
  const uint32_t thread = gpu::thread_index(), threads = gpu::thread_count();
  const uint32_t axis = thread / gpu::kWarp;
  const bool walks = thread == 0 || thread == gpu::kWarp;
  const double down = m[axis == 0 ? 1 : 4], across = m[axis == 0 ? 0 : 3];
  const int64_t size = axis == 0 ? s.source.width : s.source.height;
  double at = m[axis == 0 ? 2 : 5] + down * 0.5 + across * 0.5;
  for (int64_t k = 0; walks && k < y; ++k) at += down;
  for (int64_t first = 0; first < s.width; first += threads) {
    for (int64_t k = 0; walks && k < threads && first + k < s.width; ++k, at += across)
      walked.at[axis][k] = index_of(at, size, s.clamp != 0);
    gpu::block_barrier();
    if (first + thread < s.width)
      nearest_pixel<T>(s.source, row, first + thread, walked.at[0][thread], walked.at[1][thread]);
    gpu::block_barrier();
  }
}

// Warp a row of an output image. Blocks have at least two warps.
template <class T>
void warp_row(const Call& call) {
  const int64_t block = gpu::block_index(), image = own::quotient(block, call.height), y = block - image * call.height;
  const OutputRow<T> row(call, block);
  stage::AffineSlot s = slot_of<T>(call, image);
  bool is_possible = call.from_height > 0 && call.from_width > 0;
  for (int i = 0; i < 6; ++i) is_possible = is_possible && s.matrix[i] - s.matrix[i] == 0.0;
  const auto each = [&](auto&& compute) {
    for (int64_t x = gpu::thread_index(); x < call.width; x += gpu::thread_count()) compute(x);
  };
  if (!is_possible) return each([&](int64_t x) { row.fill(x); });
  if (call.has(kLinear)) {
    s.clamp = 1;  // values outside are this kernel's: one for each channel
    const stage::WarpReader<T> reader(s, stage::AffineScratch{});
    return each([&](int64_t x) { linear_pixel<T>(reader, row, y, x); });
  }
  const bool is_scale = s.matrix[1] == 0.0 && s.matrix[3] == 0.0;
  if (is_scale || !fits_fixed(s.matrix, call.width, call.height)) return walk_row<T>(s, row, y);
  s.walk = stage::Walk::Fixed;
  each([&](int64_t x) {
    int32_t px, py;
    stage::warp_pick(s, stage::AffineScratch{}, y, x, py, px);
    nearest_pixel<T>(s.source, row, x, px, py);
  });
}

// Add `values` [channels, count] to `to` [channels, pixels]: to pixel p those of columns order[starts[p]] up to
// order[starts[p + 1] - 1], in this order. A thread has one sum.
inline void add_in_order(const float* values, const int64_t* order, const int64_t* starts, int64_t channels,
                         int64_t count, int64_t pixels, float* to) {
  const int64_t i = int64_t{gpu::block_index()} * gpu::thread_count() + gpu::thread_index();
  if (i >= channels * pixels) return;
  const int64_t channel = own::quotient(i, pixels), pixel = i - channel * pixels;
  float sum = to[i];
  for (int64_t k = starts[pixel]; k < starts[pixel + 1]; ++k) sum += values[channel * count + order[k]];
  to[i] = sum;
}

}  // namespace stoker::warp

#define STOKER_WARP_ROWS(T)                                                                           \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 1)                                                          \
      stoker_warp_rows(uint64_t from, uint64_t to, uint64_t matrices, uint64_t fills, uint64_t fill,  \
                       uint64_t from_size, uint64_t to_size, uint64_t channels_flags) {               \
    stoker::warp::warp_row<T>({from, to, matrices, fills, fill, from_size, to_size, channels_flags}); \
  }
#define STOKER_ADD_IN_ORDER                                                                                     \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 1)                                                                    \
      stoker_add_in_order(uint64_t values, uint64_t order, uint64_t starts, uint64_t channels, uint64_t count,  \
                          uint64_t pixels, uint64_t to) {                                                       \
    stoker::warp::add_in_order(reinterpret_cast<const float*>(values), reinterpret_cast<const int64_t*>(order), \
                               reinterpret_cast<const int64_t*>(starts), static_cast<int64_t>(channels),        \
                               static_cast<int64_t>(count), static_cast<int64_t>(pixels),                       \
                               reinterpret_cast<float*>(to));                                                   \
  }
