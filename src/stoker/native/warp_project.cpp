// SPDX-License-Identifier: Apache-2.0
#include "warp_project.hpp"

#include <algorithm>
#include <cmath>

namespace stoker::warp {

namespace {

constexpr int64_t kMaxChannels = 4;

// Rounds down, as Pillow does: towards zero for what is not negative.
int64_t whole(double v) { return v < 0 ? static_cast<int64_t>(std::floor(v)) : static_cast<int64_t>(v); }

struct Cubic {
  double d;
  template <class T>
  double operator()(T a, T b, T c, T e) const {
    const double p1 = b, p2 = -a + c, p3 = 2 * (a - b) + c - e, p4 = -a + b - c + e;
    return p1 + d * (p2 + d * (p3 + d * p4));
  }
};

uint8_t truncated(double v) { return v <= 0 ? 0 : v >= 255 ? 255 : static_cast<uint8_t>(v); }

struct Pixels {
  const View& src;
  const uint8_t* row(int64_t y) const { return src.data + std::clamp<int64_t>(y, 0, src.shape[0] - 1) * src.stride[0]; }
  int64_t column(int64_t x) const { return std::clamp<int64_t>(x, 0, src.shape[1] - 1) * src.stride[1]; }

  void nearest(double x, double y, uint8_t* to, int64_t step) const {
    const uint8_t* p = src.data + static_cast<int64_t>(y) * src.stride[0] + static_cast<int64_t>(x) * src.stride[1];
    for (int64_t c = 0; c < src.shape[2]; ++c) to[c * step] = p[c * src.stride[2]];
  }

  void linear(double x, double y, uint8_t* to, int64_t step) const {
    const int64_t left = whole(x - 0.5), top = whole(y - 0.5);
    const double dx = x - 0.5 - static_cast<double>(left), dy = y - 0.5 - static_cast<double>(top);
    const int64_t a = column(left), b = column(left + 1);
    const uint8_t *upper = row(top), *lower = row(top + 1);
    const bool below = top + 1 >= 0 && top + 1 < src.shape[0];
    for (int64_t c = 0; c < src.shape[2]; ++c) {
      const int64_t at = c * src.stride[2];
      const auto between = [&](const uint8_t* p) {
        return p[a + at] + static_cast<double>(p[b + at] - p[a + at]) * dx;
      };
      const double v = between(upper), w = below ? between(lower) : v;
      to[c * step] = static_cast<uint8_t>(v + (w - v) * dy);
    }
  }

  void cubic(double x, double y, uint8_t* to, int64_t step) const {
    const int64_t left = whole(x - 0.5), top = whole(y - 0.5);
    const Cubic across{x - 0.5 - static_cast<double>(left)}, down{y - 0.5 - static_cast<double>(top)};
    const int64_t at[4] = {column(left - 1), column(left), column(left + 1), column(left + 2)};
    for (int64_t c = 0; c < src.shape[2]; ++c) {
      double v[4];
      for (int i = 0; i < 4; ++i) {
        const int64_t line = top - 1 + i;
        if (i > 0 && (line < 0 || line >= src.shape[0])) {
          v[i] = v[i - 1];  // the value of the line above, not of the nearest one
          continue;
        }
        const uint8_t* p = row(line) + c * src.stride[2];
        v[i] = across(int{p[at[0]]}, int{p[at[1]]}, int{p[at[2]]}, int{p[at[3]]});
      }
      to[c * step] = truncated(down(v[0], v[1], v[2], v[3]));
    }
  }
};

template <bool kProjective, Sampling kSampling>
void run(const View& src, const double m[8], const uint8_t* fill, const View& dst) {
  const Pixels pixels{src};
  const auto width = static_cast<double>(src.shape[1]), height = static_cast<double>(src.shape[0]);
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    const double yin = static_cast<double>(j) + 0.5;
    for (int64_t i = 0; i < dst.shape[1]; ++i, to += dst.stride[1]) {
      const double xin = static_cast<double>(i) + 0.5;
      double x = m[0] * xin + m[1] * yin + m[2], y = m[3] * xin + m[4] * yin + m[5];
      if constexpr (kProjective) {
        const double w = m[6] * xin + m[7] * yin + 1;
        x /= w;
        y /= w;
      }
      if (!(x >= 0 && x < width && y >= 0 && y < height)) {
        for (int64_t c = 0; c < dst.shape[2]; ++c) to[c * dst.stride[2]] = fill[c];
      } else if constexpr (kSampling == Sampling::Nearest) {
        pixels.nearest(x, y, to, dst.stride[2]);
      } else if constexpr (kSampling == Sampling::Linear) {
        pixels.linear(x, y, to, dst.stride[2]);
      } else {
        pixels.cubic(x, y, to, dst.stride[2]);
      }
    }
  }
}

using Run = void (*)(const View&, const double*, const uint8_t*, const View&);

template <bool kProjective>
Run choose(Sampling sampling) {
  switch (sampling) {
    case Sampling::Nearest: return run<kProjective, Sampling::Nearest>;
    case Sampling::Linear: return run<kProjective, Sampling::Linear>;
    case Sampling::Cubic: return run<kProjective, Sampling::Cubic>;
  }
  return nullptr;
}

}  // namespace

bool project(const View& src, const double m[8], bool projective, Sampling sampling, const uint8_t* fill,
             const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != DType::U8 || dst.dtype != DType::U8) return false;
  if (src.shape[2] != dst.shape[2] || src.shape[2] > kMaxChannels) return false;
  if (!projective && sampling == Sampling::Nearest) return false;
  for (int i = 0; i < (projective ? 8 : 6); ++i)
    if (!std::isfinite(m[i])) return false;
  (projective ? choose<true>(sampling) : choose<false>(sampling))(src, m, fill, dst);
  return true;
}

}  // namespace stoker::warp
