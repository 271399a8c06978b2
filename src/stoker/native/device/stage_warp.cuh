// SPDX-License-Identifier: Apache-2.0
// Affine interpolator of stages: one pixel.
#pragma once
#include "device/stage_sample.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"
#include "shared/warp_point.hpp"

namespace stoker::stage {

// Find the nearest pixel of a position; negative: outside.
inline void warp_pick(const AffineSlot& s, const AffineScratch& scratch, int64_t y, int64_t x, int32_t& py,
                      int32_t& px) {
  const double* m = s.matrix;
  if (s.walk == Walk::Scale) {
    px = array_at<int32_t>(scratch.columns)[x];
    py = array_at<int32_t>(scratch.rows)[y];
  } else if (s.walk == Walk::Fixed) {
    const auto row = static_cast<uint32_t>(y), column = static_cast<uint32_t>(x);
    const uint32_t fx =
        warp::to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + row * warp::to_fixed(m[1]) + column * warp::to_fixed(m[0]);
    const uint32_t fy =
        warp::to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + row * warp::to_fixed(m[4]) + column * warp::to_fixed(m[3]);
    px = warp::index_of(static_cast<int32_t>(fx), s.source.width, s.clamp != 0);
    py = warp::index_of(static_cast<int32_t>(fy), s.source.height, s.clamp != 0);
  } else {
    px = array_at<int32_t>(scratch.columns)[y * s.width + x];
    py = array_at<int32_t>(scratch.rows)[y * s.width + x];
  }
}

// Conversions of integers below 2^31 that avoid slow instructions of the GPU: adding 2^52 leaves no bits for a
// fraction.
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

// Same as warp::neighbours().
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

// Linear sampling of 8-bit pixels in float. It needs a third of the instructions of double arithmetic, and cheaper
// ones; cases that it cannot decide are computed in double. Coordinates have 32 integer and 32 fraction bits, rounded
// down, so that it is known exactly what is inside; weights have 23 bits. A value is therefore off by less than 1.1e-4:
// 255 (2 2^-23) from the weights, 5 2^-17 from rounding. Values are truncated; a value within kDoubt of an integer is
// computed again, unless all of its neighbours are equal, which is exact.
constexpr float kDoubt = 1.0f / 4096;
constexpr float kByteBias = 8388608.0f;  // 2^23: the last bit is one

#if defined(__CUDA_ARCH__)
inline float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// Split v - 1/2 into an integer and 32 fraction bits, rounded down.
inline void half_before(double v, int32_t& whole, uint32_t& fraction) {
  const double sum = __dadd_rd(v, 1572863.5);  // 1.5 * 2^20: the last bit is 2^-32
  whole = __double2hiint(sum) - 0x41380000;
  fraction = static_cast<uint32_t>(__double2loint(sum));
}
inline double center_of(int32_t v) { return __hiloint2double(0x41380000 + v, 0x80000000) - 1572864.0; }  // |v| < 2^19
// v + kDoubt for -kDoubt <= v < 256, rounded down to 12 fraction bits, as the digits of a float.
inline uint32_t round_down(float v) { return static_cast<uint32_t>(__float_as_int(__fadd_rd(v, 3072.0f + kDoubt))); }
inline float fraction_as_float(uint32_t fraction) { return __int_as_float(0x3F800000 | fraction >> 9) - 1.0f; }
// Convert such digits of an integer to its value, and back.
inline float value_of(uint32_t digits) { return __int_as_float(static_cast<int32_t>(digits & ~0xFFFu)) - 3072.0f; }
inline uint32_t digits_of(uint8_t v) { return static_cast<uint32_t>(__float_as_int(3072.0f + static_cast<float>(v))); }
// Return a byte of a word plus kByteBias.
inline float biased(uint32_t word, int byte) {
  return __int_as_float(
      static_cast<int32_t>(gpu::choose_bytes(word, 0x4B000000u, 0x7440u | static_cast<uint32_t>(byte))));
}
inline uint32_t load_byte(const uint8_t* p) {
  uint32_t byte;
  asm("ld.global.nc.u8 %0, [%1];" : "=r"(byte) : "l"(p));
  return byte;
}
#else
inline float multiply_add(float a, float b, float c) { return a * b + c; }
inline void half_before(double v, int32_t& whole, uint32_t& fraction) {
  const auto fixed = static_cast<int64_t>(std::floor(v * 4294967296.0)) - (int64_t{1} << 31);
  whole = static_cast<int32_t>(fixed >> 32);
  fraction = static_cast<uint32_t>(fixed);
}
inline double center_of(int32_t v) { return static_cast<double>(v) + 0.5; }
inline uint32_t round_down(float v) {
  return static_cast<uint32_t>(static_cast<int32_t>(std::floor(static_cast<double>(v) * 4096.0)) + 1);
}
inline float fraction_as_float(uint32_t fraction) { return static_cast<float>(fraction >> 9) * 0x1p-23f; }
inline float value_of(uint32_t digits) { return static_cast<float>(digits >> 12 & 0xFF); }
inline uint32_t digits_of(uint8_t v) { return static_cast<uint32_t>(v) << 12; }
inline float biased(uint32_t word, int byte) { return static_cast<float>(word >> (8 * byte) & 0xFF) + kByteBias; }
inline uint32_t load_byte(const uint8_t* p) { return *p; }
#endif
// Return the value from the result of round_down, unless it is within kDoubt of an integer.
inline uint32_t whole_of(uint32_t digits) { return digits >> 12 & 0xFF; }
inline bool doubtful(uint32_t digits) { return (digits & 0xFFE) == 0; }

// Inputs of an affine interpolator, held by a thread.
template <class T>
struct WarpReader {
  const AffineSlot s;
  const AffineScratch scratch;
  const T fill;
  bool single;

  int64_t quick() const { return s.quick; }
  Walk walk() const { return s.walk; }

  WarpReader(const AffineSlot& slot, const AffineScratch& at)
      : s(slot), scratch(at), fill(static_cast<T>(slot.fill)), single(slot.source.channels == 1) {}

  template <int N>
  void sample(int64_t y, int64_t x, int64_t c, T* out) const {
    if (s.walk == Walk::Linear) return linear<N>(y, x, c, out);
    int32_t py, px;
    warp_pick(s, scratch, y, x, py, px);
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
    const double vx = m[0] * xin + m[1] * yin + m[2], vy = m[3] * xin + m[4] * yin + m[5];  // as in warp::Line
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

// Four neighbouring RGB pixels of kPixel bytes each, and the position between them.
template <int kPixel>
class Quad {
 public:
  // Interpolate each channel, in the digits of round_down.
  void interpolate(uint32_t (&digits)[3]) const {
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      const float a = at(0, k), c = at(2, k);
      const float upper = multiply_add(at(1, k) - a, weight_x_, a - kByteBias);
      const float lower = multiply_add(at(3, k) - c, weight_x_, c - kByteBias);
      digits[k] = round_down(multiply_add(lower - upper, weight_y_, upper));
    }
  }

 protected:
  // `p` is the address of the upper left neighbour.
  void load(const uint8_t* p, int32_t row) {
    load_two(p, 0);
    load_two(p + row, 2);
  }
  // Return whether a channel's value is in doubt and its neighbours are not all equal.
  bool undecided(const uint32_t (&digits)[3]) const {
    bool is_doubtful = false;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const int part = c % kParts;
      const uint32_t different = (pixel_[0][part] ^ pixel_[1][part]) | (pixel_[0][part] ^ pixel_[2][part]) |
                                 (pixel_[0][part] ^ pixel_[3][part]);
      is_doubtful |= doubtful(digits[c]) && (kPixel == 4 ? different & 0xFFu << (8 * c) : different) != 0;
    }
    return is_doubtful;
  }

  float weight_x_, weight_y_;

 private:
  void load_two(const uint8_t* p, int i) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      if constexpr (kPixel == 4) {
        pixel_[i + n][0] = load_word(p + 4 * n);
      } else {
#pragma unroll
        for (int c = 0; c < 3; ++c) pixel_[i + n][c] = load_byte(p + 3 * n + c);
      }
    }
  }
  float at(int i, int c) const { return kPixel == 4 ? biased(pixel_[i][0], c) : biased(pixel_[i][c % kParts], 0); }

  static constexpr int kParts = kPixel == 4 ? 1 : 3;
  uint32_t pixel_[4][kParts];
};

inline bool in_doubt(const uint32_t (&digits)[3]) {
  return doubtful(digits[0]) || doubtful(digits[1]) || doubtful(digits[2]);
}

// Source of a column of RGB pixels (AffineSlot::quick), whose offsets have 31 bits.
struct ColumnSource {
  const uint8_t* data;
  int32_t row;
  int32_t right, bottom;  // the last column and row
  bool clamp;

  explicit ColumnSource(const AffineSlot& s)
      : data(array_at<uint8_t>(s.source.data)),
        row(static_cast<int32_t>(s.source.row)),
        right(static_cast<int32_t>(s.source.width) - 1),
        bottom(static_cast<int32_t>(s.source.height) - 1),
        clamp(s.clamp != 0) {}
};

// linear() for RGB (AffineSlot::quick) with kPixel bytes per pixel, along a column: a pixel is loaded by its
// constructor and interpolated when it is taken.
template <int kPixel>
class QuickColumn {
 public:
  using Reader = WarpReader<uint8_t>;
  using Index = int32_t;

  QuickColumn(const Reader& reader, int64_t x) : reader_(reader), source_(reader.s), x_(static_cast<int32_t>(x)) {
    along_x_ = reader.s.matrix[0] * center_of(x_);
    along_y_ = reader.s.matrix[3] * center_of(x_);
  }

  // Source position of pixel (y, x), as in warp::Line.
  double source_x(int32_t y) const { return along_x_ + reader_.s.matrix[1] * center_of(y) + reader_.s.matrix[2]; }
  double source_y(int32_t y) const { return along_y_ + reader_.s.matrix[4] * center_of(y) + reader_.s.matrix[5]; }
  const Reader& reader() const { return reader_; }
  const ColumnSource& source() const { return source_; }
  // Compute a pixel again, in double.
  void compute(int32_t y, uint8_t (&exact)[3]) const { reader_.template linear<3>(y, x_, 0, exact); }

  class Pixel : public Quad<kPixel> {
   public:
    Pixel(const QuickColumn& column, int32_t y) : y_(y) {
      const ColumnSource& source = column.source_;
      const Along across(column.source_x(y), source.right), down(column.source_y(y), source.bottom);
      inside_ = across.inside && down.inside;
      this->weight_x_ = across.weight;
      this->weight_y_ = down.weight;
      this->load(source.data + static_cast<uint32_t>(down.first * source.row + across.first * kPixel), source.row);
    }

    // Compute the channels, as digits.
    void take_digits(const QuickColumn& column, uint32_t (&digits)[3]) const {
      this->interpolate(digits);
      const bool outside = !inside_ && !column.source_.clamp;
      if (!outside && !in_doubt(digits)) return;
      if (outside) {
#pragma unroll
        for (int k = 0; k < 3; ++k) digits[k] = digits_of(column.reader_.fill);
      } else if (this->undecided(digits)) {
        uint8_t exact[3];
        column.compute(y_, exact);
#pragma unroll
        for (int k = 0; k < 3; ++k) digits[k] = digits_of(exact[k]);
      }
    }

    template <class Value>
    void take(const QuickColumn& column, Value* out) const {
      uint32_t digits[3];
      take_digits(column, digits);
#pragma unroll
      for (int k = 0; k < 3; ++k) out[k] = static_cast<Value>(whole_of(digits[k]));
    }

   private:
    // Neighbours along one axis: `first` and the next one, whose weight is 0 or 1 if both are the edge's pixel.
    struct Along {
      int32_t first;
      float weight;
      bool inside;

      Along(double v, int32_t last) {
        int32_t before;
        uint32_t fraction;
        half_before(v, before, fraction);
        inside = static_cast<uint32_t>(before + static_cast<int32_t>(fraction >> 31)) <= static_cast<uint32_t>(last);
        first = before < last - 1 ? before : last - 1;
        first = first > 0 ? first : 0;
        weight = before == first ? fraction_as_float(fraction) : before < 0 ? 0.0f : 1.0f;
      }
    };

    int32_t y_;
    bool inside_;
  };

 private:
  const Reader& reader_;
  const ColumnSource source_;
  const int32_t x_;
  double along_x_, along_y_;
};

// Nearest RGB pixels (AffineSlot::quick) along a column, likewise. `fixed`: positions are numbers in fixed point, else
// those of the scratch's tables.
template <bool fixed>
class PickColumn {
 public:
  using Reader = WarpReader<uint8_t>;
  using Index = int32_t;

  PickColumn(const Reader& reader, int64_t x)
      : source_(reader.s), pixel_(static_cast<int32_t>(reader.s.quick)), fill_(reader.fill) {
    const double* m = reader.s.matrix;  // the numbers of warp_pick()
    if constexpr (fixed) {
      const auto column = static_cast<uint32_t>(x);
      first_x_ = warp::to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + column * warp::to_fixed(m[0]);
      first_y_ = warp::to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + column * warp::to_fixed(m[3]);
      step_x_ = warp::to_fixed(m[1]), step_y_ = warp::to_fixed(m[4]);
    } else {
      column_ =
          x < reader.s.width ? array_at<int32_t>(reader.scratch.columns)[x] : 0;  // threads beyond it have no pixels
      rows_ = array_at<int32_t>(reader.scratch.rows);
    }
  }

  class Pixel {
   public:
    Pixel(const PickColumn& c, int32_t y) {
      const int32_t x_at = c.column_of(y), y_at = c.row_of(y);
      const ColumnSource& source = c.source_;
      const int32_t column = within(x_at, source.right), row = within(y_at, source.bottom);
      inside_ = source.clamp | ((column == x_at) & (row == y_at));
      const uint8_t* p = source.data + static_cast<uint32_t>(row * source.row + column * c.pixel_);
#pragma unroll
      for (int k = 0; k < 3; ++k) value_[k] = load_byte(p + k);
    }
    template <class Value>
    void take(const PickColumn& c, Value* out) const {
#pragma unroll
      for (int k = 0; k < 3; ++k) out[k] = static_cast<Value>(inside_ ? value_[k] : c.fill_);
    }

   private:
    static int32_t within(int32_t at, int32_t last) { return at < 0 ? 0 : at > last ? last : at; }

    bool inside_;
    uint32_t value_[3];
  };

 private:
  // The nearest column and row of the source, which may lie outside of it.
  int32_t column_of(int32_t y) const {
    if constexpr (fixed) return static_cast<int32_t>(first_x_ + static_cast<uint32_t>(y) * step_x_) >> 16;
    else return column_;
  }
  int32_t row_of(int32_t y) const {
    if constexpr (fixed) return static_cast<int32_t>(first_y_ + static_cast<uint32_t>(y) * step_y_) >> 16;
    else return static_cast<int32_t>(load_word(rows_ + y));
  }

  const ColumnSource source_;
  const int32_t pixel_;
  const uint32_t fill_;
  uint32_t first_x_, first_y_, step_x_, step_y_;
  int32_t column_;
  const int32_t* rows_;
};

template <class T>
struct Warped {
  using Slot = AffineSlot;
  using Scratch = AffineScratch;
  using Reader = WarpReader<T>;
  using Type = T;
  static constexpr bool kSamples = true, kHasScratch = true, kQuick = std::is_same_v<T, uint8_t>;
  static constexpr int kStep = 2;  // in a rotated image a warp then touches fewer rows
};

}  // namespace stoker::stage
