// SPDX-License-Identifier: Apache-2.0
// The samplers of stages: one resampled or warped pixel, from the tables that sampler_kernels.cuh has made.
#pragma once
#include "device.cuh"
#include "../resample_taps.hpp"
#include "../warp_point.hpp"
#include "stage_slot.hpp"

namespace stoker::stage {

template <class T>
inline T load_at(const uint8_t* p) { return *reinterpret_cast<const T*>(p); }
template <class T>
inline const T* array_at(uint64_t address) { return reinterpret_cast<const T*>(address); }

// The weighted sum of one pixel's channels: 8-bit pixels in fixed point, which wraps, all others in double.
template <class T>
struct Sum {
  using Weight = double;
  double value = 0.0;
  void add(T x, double w) { value += static_cast<double>(x) * w; }
  T result() const { return resample::from_double<T>(value); }
};
template <>
struct Sum<uint8_t> {
  using Weight = int32_t;
  uint32_t value = resample::kFixedHalf;
  void add(uint8_t x, int32_t w) { value += x * static_cast<uint32_t>(w); }
  uint8_t result() const { return resample::from_fixed(value); }
};

// One pass over N channels: taps.count pixels from p on, `step` bytes apart.
template <class T, int N>
inline void filter(const uint8_t* p, int64_t step, int64_t channel, int32_t count,
                   const typename Sum<T>::Weight* weight, T* out) {
  Sum<T> sum[N];
  for (int32_t t = 0; t < count; ++t, p += step) {
    const auto w = weight[t];
#pragma unroll
    for (int c = 0; c < N; ++c) sum[c].add(load_at<T>(p + c * channel), w);
  }
#pragma unroll
  for (int c = 0; c < N; ++c) out[c] = sum[c].result();
}

template <class T, int N>
inline void pick(const uint8_t* p, int64_t channel, T* out) {
#pragma unroll
  for (int c = 0; c < N; ++c) out[c] = load_at<T>(p + c * channel);
}

// What the last pass reads.
struct Plane {
  const uint8_t* data;
  int64_t row, pixel, channel, first_row, first_column;
  const uint8_t* at(int64_t y, int64_t x, int64_t c) const {
    return data + (y - first_row) * row + (x - first_column) * pixel + c * channel;
  }
};

template <class T>
inline Plane plane_of(const ResampleSlot& s, const ResampleRoom& room) {
  const Source& i = s.source;
  if (!s.two_passes()) return {array_at<uint8_t>(i.data), i.row, i.pixel, i.channel, 0, 0};
  const int64_t pixel = i.channels * static_cast<int64_t>(sizeof(T));
  const bool across = s.vertical_first;  // the rows are done: what is left are outputs in y, source columns in x
  return {array_at<uint8_t>(room.between), s.between_width() * pixel, pixel, static_cast<int64_t>(sizeof(T)),
          across ? 0 : s.first_row, across ? s.first_column : 0};
}

// Channels [c, c + N) of output pixel (y, x), where both passes pick or one filters, or from the image between.
template <class T, int N>
inline void resample_pixel(const ResampleSlot& s, const ResampleRoom& room, int64_t y, int64_t x, int64_t c, T* out) {
  using Weight = typename Sum<T>::Weight;
  const Plane plane = plane_of<T>(s, room);
  const bool two = s.two_passes();
  const resample::Taps v = array_at<resample::Taps>(room.vertical_taps)[y];
  const resample::Taps h = array_at<resample::Taps>(room.horizontal_taps)[x];
  const bool along_y = two ? !s.vertical_first : !s.picks(true);
  const bool along_x = two ? s.vertical_first != 0 : !s.picks(false);
  if ((!along_y && !two && v.count == 0) || (!along_x && !two && h.count == 0)) {
#pragma unroll
    for (int i = 0; i < N; ++i) out[i] = 0;  // behind the last pixel
    return;
  }
  const uint8_t* p = plane.at(two && !along_y ? y : v.start, two && !along_x ? x : h.start, c);
  if (along_y) {
    filter<T, N>(p, plane.row, plane.channel, v.count, array_at<Weight>(room.vertical_weights) + y * room.vertical_pitch,
                 out);
  } else if (along_x) {
    filter<T, N>(p, plane.pixel, plane.channel, h.count,
                 array_at<Weight>(room.horizontal_weights) + x * room.horizontal_pitch, out);
  } else {
    pick<T, N>(p, plane.channel, out);
  }
}

// Channels [c, c + N) of the image between two passes, at row y and column x of it.
template <class T, int N>
inline void between_pixel(const ResampleSlot& s, const ResampleRoom& room, int64_t y, int64_t x, int64_t c, T* out) {
  using Weight = typename Sum<T>::Weight;
  const Source& i = s.source;
  const uint8_t* base = array_at<uint8_t>(i.data) + c * i.channel;
  if (s.vertical_first) {
    const resample::Taps v = array_at<resample::Taps>(room.vertical_taps)[y];
    filter<T, N>(base + v.start * i.row + (s.first_column + x) * i.pixel, i.row, i.channel, v.count,
                 array_at<Weight>(room.vertical_weights) + y * room.vertical_pitch, out);
  } else {
    const resample::Taps h = array_at<resample::Taps>(room.horizontal_taps)[x];
    filter<T, N>(base + (s.first_row + y) * i.row + h.start * i.pixel, i.pixel, i.channel, h.count,
                 array_at<Weight>(room.horizontal_weights) + x * room.horizontal_pitch, out);
  }
}

// The pixel that a sampler without interpolation picks; negative: outside.
inline void warp_pick(const AffineSlot& s, const AffineRoom& room, int64_t y, int64_t x, int32_t& py, int32_t& px) {
  const double* m = s.matrix;
  if (s.walk == Walk::Scale) {
    px = array_at<int32_t>(room.columns)[x];
    py = array_at<int32_t>(room.rows)[y];
  } else if (s.walk == Walk::Fixed) {
    const auto row = static_cast<uint32_t>(y), column = static_cast<uint32_t>(x);
    const uint32_t fx = warp::to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + row * warp::to_fixed(m[1]) +
                        column * warp::to_fixed(m[0]);
    const uint32_t fy = warp::to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + row * warp::to_fixed(m[4]) +
                        column * warp::to_fixed(m[3]);
    px = warp::index_of(static_cast<int32_t>(fx), s.source.width, s.clamp != 0);
    py = warp::index_of(static_cast<int32_t>(fy), s.source.height, s.clamp != 0);
  } else {
    px = array_at<int32_t>(room.columns)[y * s.width + x];
    py = array_at<int32_t>(room.rows)[y * s.width + x];
  }
}

template <class T, int N>
inline void warp_linear(const AffineSlot& s, int64_t y, int64_t x, int64_t c, T* out) {
  const double* m = s.matrix;
  const Source& i = s.source;
  const double yin = static_cast<double>(y) + 0.5;
  const warp::Line xs{m[0], m[1] * yin, m[2], static_cast<double>(i.width)};
  const warp::Line ys{m[3], m[4] * yin, m[5], static_cast<double>(i.height)};
  const double vx = xs.at(x), vy = ys.at(x);
  if (!s.clamp && !(vx >= 0.0 && vx < xs.limit && vy >= 0.0 && vy < ys.limit)) {
    const T fill = warp::to_type<T>(s.fill);
#pragma unroll
    for (int k = 0; k < N; ++k) out[k] = fill;
    return;
  }
  const warp::Neighbours h = warp::neighbours(vx, xs.limit, i.width - 1, i.pixel);
  const warp::Neighbours v = warp::neighbours(vy, ys.limit, i.height - 1, i.row);
  const uint8_t* top = array_at<uint8_t>(i.data) + v.a + c * i.channel;
  const uint8_t* bottom = array_at<uint8_t>(i.data) + v.b + c * i.channel;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const int64_t at = k * i.channel;
    const double upper = warp::lerp(load_at<T>(top + h.a + at), load_at<T>(top + h.b + at), h.weight);
    const double lower = warp::lerp(load_at<T>(bottom + h.a + at), load_at<T>(bottom + h.b + at), h.weight);
    out[k] = warp::from_interpolated<T>(warp::lerp(upper, lower, v.weight));
  }
}

template <class T, int N>
inline void warp_pixel(const AffineSlot& s, const AffineRoom& room, int64_t y, int64_t x, int64_t c, T* out) {
  if (s.walk == Walk::Linear) return warp_linear<T, N>(s, y, x, c, out);
  int32_t py, px;
  warp_pick(s, room, y, x, py, px);
  if ((px | py) < 0) {
    const T fill = warp::to_type<T>(s.fill);
#pragma unroll
    for (int k = 0; k < N; ++k) out[k] = fill;
    return;
  }
  const Source& i = s.source;
  pick<T, N>(array_at<uint8_t>(i.data) + py * i.row + px * i.pixel + c * i.channel, i.channel, out);
}

// What a generated stage names as its sampler. `sample` gives channels [c, c + N) of pixel (y, x).
struct Unsampled {
  struct Slot {};
  struct Room {};
  static constexpr bool kSamples = false;
};
template <class T>
struct Resampled {
  using Slot = ResampleSlot;
  using Room = ResampleRoom;
  using Type = T;
  static constexpr bool kSamples = true;
  template <int N>
  static void sample(const Slot& s, const Room& room, int64_t y, int64_t x, int64_t c, T* out) {
    resample_pixel<T, N>(s, room, y, x, c, out);
  }
};
template <class T>
struct Warped {
  using Slot = AffineSlot;
  using Room = AffineRoom;
  using Type = T;
  static constexpr bool kSamples = true;
  template <int N>
  static void sample(const Slot& s, const Room& room, int64_t y, int64_t x, int64_t c, T* out) {
    warp_pixel<T, N>(s, room, y, x, c, out);
  }
};

}  // namespace stoker::stage
