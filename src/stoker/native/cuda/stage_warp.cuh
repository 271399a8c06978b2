// SPDX-License-Identifier: Apache-2.0
// The affine sampler of stages: one pixel.
#pragma once
#include "device.cuh"
#include "../warp_point.hpp"
#include "stage_sample.cuh"
#include "stage_slot.hpp"

namespace stoker::stage {

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

// Conversions of whole numbers below 2^31 that avoid the GPU's slow instructions: 2^52 leaves no room for a fraction.
#if defined(__CUDA_ARCH__)
inline double as_double(int32_t v) { return __hiloint2double(0x43300000, v ^ 0x80000000) - 4503601774854144.0; }
inline int32_t truncate(double v, double& whole) {  // v >= 0
  const double sum = __dadd_rz(v, 4503599627370496.0);
  whole = sum - 4503599627370496.0;
  return __double2loint(sum);
}
#else
inline double as_double(int32_t v) { return static_cast<double>(v); }
inline int32_t truncate(double v, double& whole) {
  const auto i = static_cast<int32_t>(v);
  whole = static_cast<double>(i);
  return i;
}
#endif

// warp::neighbours().
inline warp::Neighbours neighbours(double v, double limit, int32_t last, int64_t stride) {
  v = v > 0.0 ? (v < limit ? v : limit) : 0.0;
  v -= 0.5;
  double whole = -1.0;
  const int32_t i = v < 0.0 ? -1 : truncate(v, whole);
  return {(i < 0 ? 0 : i) * stride, (i < last ? i + 1 : last) * stride, v - whole};
}

template <class T>
inline double lerp(T a, T b, double t) {
  if constexpr (sizeof(T) < 4) return as_double(a) + as_double(b - a) * t;
  else return warp::lerp(a, b, t);
}

template <class T>
inline T from_interpolated(double v) {
  double whole;
  if constexpr (std::is_same_v<T, uint8_t>) return static_cast<uint8_t>(truncate(v, whole));
  else return warp::from_interpolated<T>(v);
}

// Linear sampling of 8-bit pixels in float: three times fewer and cheaper instructions than in double, and what it cannot
// decide is left to that. Coordinates have 32 bits of whole numbers and 32 behind, rounded down, so that what is inside is
// known exactly; weights 23. So a value is wrong by less than 1.1e-4: 255 (2 2^-23) by weights, 5 2^-17 by rounding.
// Values are truncated; one that is as near to a whole number as kDoubt is computed again, unless it is of equal neighbours,
// which is exact.
constexpr float kDoubt = 1.0f / 4096;

#if defined(__CUDA_ARCH__)
inline float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
inline void to_fixed(double v, int32_t& whole, uint32_t& fraction) {
  const double sum = __dadd_rd(v, 1572864.0);  // 1.5 * 2^20: the last bit is 2^-32
  whole = __double2hiint(sum) - 0x41380000;
  fraction = static_cast<uint32_t>(__double2loint(sum));
}
inline int32_t round_down(float v, float& whole) {  // |v| < 2^22
  const float sum = __fadd_rd(v, 12582912.0f);  // 1.5 * 2^23: also where rounding has brought v below zero
  whole = sum - 12582912.0f;
  return __float_as_int(sum) & 0x3FFFFF;
}
inline float fraction_as_float(uint32_t fraction) { return __int_as_float(0x3F800000 | fraction >> 9) - 1.0f; }
inline uint32_t bits_of(float v) { return static_cast<uint32_t>(__float_as_int(v)); }
#else
inline float multiply_add(float a, float b, float c) { return a * b + c; }
inline void to_fixed(double v, int32_t& whole, uint32_t& fraction) {
  const auto fixed = static_cast<int64_t>(std::floor(v * 4294967296.0));
  whole = static_cast<int32_t>(fixed >> 32);
  fraction = static_cast<uint32_t>(fixed);
}
inline int32_t round_down(float v, float& whole) {
  const auto i = static_cast<int32_t>(v);
  whole = static_cast<float>(i);
  return i;
}
inline float fraction_as_float(uint32_t fraction) { return static_cast<float>(fraction >> 9) * 0x1p-23f; }
inline uint32_t bits_of(float v) { return v != 0.0f; }
#endif

// What an affine sampler reads, held by a thread.
template <class T>
struct WarpReader {
  const AffineSlot s;
  const AffineRoom room;
  const T fill;
  bool single;

  bool quick() const { return s.quick != 0; }

  WarpReader(const AffineSlot& slot, const AffineRoom& at)
      : s(slot), room(at), fill(static_cast<T>(slot.fill)), single(slot.source.channels == 1) {}

  template <int N>
  void sample(int64_t y, int64_t x, int64_t c, T* out) const {
    if (s.walk == Walk::Linear) return linear<N>(y, x, c, out);
    int32_t py, px;
    warp_pick(s, room, y, x, py, px);
    if ((px | py) < 0) return outside<N>(out);
    const Source& i = s.source;
    pick<T, N>(array_at<uint8_t>(i.data) + py * i.row + px * i.pixel + c * i.channel, i.channel, out);
  }

  template <int N>
  void outside(T* out) const {
#pragma unroll
    for (int k = 0; k < N; ++k) out[k] = fill;
  }

  template <int N>
  void linear(int64_t y, int64_t x, int64_t c, T* out) const {
    const double* m = s.matrix;
    const Source& i = s.source;
    const double xin = as_double(static_cast<int32_t>(x)) + 0.5, yin = as_double(static_cast<int32_t>(y)) + 0.5;
    const double width = as_double(static_cast<int32_t>(i.width)), height = as_double(static_cast<int32_t>(i.height));
    const double vx = m[0] * xin + m[1] * yin + m[2], vy = m[3] * xin + m[4] * yin + m[5];  // as warp::Line
    if (!s.clamp && !(vx >= 0.0 && vx < width && vy >= 0.0 && vy < height)) return outside<N>(out);
    const warp::Neighbours h = neighbours(vx, width, static_cast<int32_t>(i.width) - 1, i.pixel);
    const warp::Neighbours v = neighbours(vy, height, static_cast<int32_t>(i.height) - 1, i.row);
    const uint8_t* top = array_at<uint8_t>(i.data) + v.a + c * i.channel;
    const uint8_t* bottom = array_at<uint8_t>(i.data) + v.b + c * i.channel;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t at = k * i.channel;
      const double upper = lerp<T>(load_at<T>(top + h.a + at), load_at<T>(top + h.b + at), h.weight);
      const double lower = lerp<T>(load_at<T>(bottom + h.a + at), load_at<T>(bottom + h.b + at), h.weight);
      out[k] = from_interpolated<T>(warp::lerp(upper, lower, v.weight));
    }
  }
};

// linear() of packed RGB whose coordinates and offsets are small (AffineSlot::quick), along a column: pixels are loaded when
// they are made, and interpolated when they are taken.
class QuickColumn {
 public:
  using Reader = WarpReader<uint8_t>;

  QuickColumn(const Reader& reader, int64_t x)
      : reader_(reader), x_(x), data_(array_at<uint8_t>(reader.s.source.data)),
        row_(static_cast<int32_t>(reader.s.source.row)), right_(static_cast<int32_t>(reader.s.source.width) - 1),
        bottom_(static_cast<int32_t>(reader.s.source.height) - 1) {
    const double xin = as_double(static_cast<int32_t>(x)) + 0.5;
    along_x_ = reader.s.matrix[0] * xin;
    along_y_ = reader.s.matrix[3] * xin;
  }

  class Pixel {
   public:
    Pixel(const QuickColumn& column, int64_t y) : y_(y) {
      const double* m = column.reader_.s.matrix;
      const double yin = as_double(static_cast<int32_t>(y)) + 0.5;
      int32_t x_whole, y_whole;
      uint32_t x_fraction, y_fraction;
      to_fixed(column.along_x_ + m[1] * yin + m[2], x_whole, x_fraction);  // as warp::Line
      to_fixed(column.along_y_ + m[4] * yin + m[5], y_whole, y_fraction);
      inside_ = static_cast<uint32_t>(x_whole) <= static_cast<uint32_t>(column.right_) &&
                static_cast<uint32_t>(y_whole) <= static_cast<uint32_t>(column.bottom_);
      // Half a pixel before. Outside, both neighbours are the edge.
      const int32_t across = x_whole - 1 + static_cast<int32_t>(x_fraction >> 31);
      const int32_t down = y_whole - 1 + static_cast<int32_t>(y_fraction >> 31);
      weight_x_ = fraction_as_float(x_fraction ^ 0x80000000u);
      weight_y_ = fraction_as_float(y_fraction ^ 0x80000000u);
      const int32_t left = 3 * within(across, column.right_), right = 3 * within(across + 1, column.right_);
      const int32_t top = within(down, column.bottom_) * column.row_;
      const int32_t bottom = within(down + 1, column.bottom_) * column.row_;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint8_t* p = column.data_ + static_cast<uint32_t>((i < 2 ? top : bottom) + (i % 2 ? right : left));
#pragma unroll
        for (int c = 0; c < 3; ++c) byte_[i][c] = p[c];
      }
    }

    template <class Value>
    void take(const QuickColumn& column, Value* out) const {
      bool doubt = false;
#pragma unroll
      for (int k = 0; k < 3; ++k) {
        const auto a = static_cast<float>(byte_[0][k]), c = static_cast<float>(byte_[2][k]);
        const float above = static_cast<float>(byte_[1][k]) - a, below = static_cast<float>(byte_[3][k]) - c;
        const float upper = multiply_add(above, weight_x_, a), lower = multiply_add(below, weight_x_, c);
        const float down = lower - upper, value = multiply_add(down, weight_y_, upper);
        float whole;
        out[k] = static_cast<Value>(round_down(value, whole));
        const float off = value - whole - 0.5f;
        doubt |= (off > 0.5f - kDoubt || off < kDoubt - 0.5f) && (bits_of(above) | bits_of(below) | bits_of(down)) != 0;
      }
      const bool outside = !inside_ && !column.reader_.s.clamp;
      if (!outside && !doubt) return;
      uint8_t exact[3];
      if (outside) column.reader_.template outside<3>(exact);
      else column.reader_.template linear<3>(y_, column.x_, 0, exact);
#pragma unroll
      for (int k = 0; k < 3; ++k) out[k] = exact[k];
    }

   private:
    static int32_t within(int32_t i, int32_t last) { return i < 0 ? 0 : i < last ? i : last; }
    int64_t y_;
    float weight_x_, weight_y_;
    bool inside_;
    uint32_t byte_[4][3];
  };

 private:
  const Reader& reader_;
  const int64_t x_;
  const uint8_t* data_;
  const int32_t row_, right_, bottom_;
  double along_x_, along_y_;
};

template <class T>
struct Warped {
  using Slot = AffineSlot;
  using Room = AffineRoom;
  using Reader = WarpReader<T>;
  using Type = T;
  static constexpr bool kSamples = true, kRooms = true, kQuick = std::is_same_v<T, uint8_t>;
  static constexpr int kStep = 2;  // where the image is turned, fewer of its rows are under a warp
};

}  // namespace stoker::stage
