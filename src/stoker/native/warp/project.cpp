// SPDX-License-Identifier: Apache-2.0
#include "warp/project.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/simd.hpp"
#include "shared/warp_project_point.hpp"
#include "warp/four_doubles.hpp"

namespace stoker::warp {

namespace {

constexpr int64_t kMaxChannels = 4;

constexpr int64_t kChunk = 64;  // pixels whose points are computed together

struct Points {
  double x[kChunk], y[kChunk];
};

// Points of pixels i0 .. i0 + n - 1 of row j.
template <bool kProjective>
[[gnu::always_inline]] inline void find_points(const double* m, int64_t i0, int64_t j, int64_t n, Points* points) {
  const double first = static_cast<double>(i0), yin = static_cast<double>(j) + 0.5;
  for (int32_t k = 0; k < static_cast<int32_t>(n); ++k) {
    const Point p = point_at<kProjective>(m, first + static_cast<double>(k) + 0.5, yin);
    points->x[k] = p.x;
    points->y[k] = p.y;
  }
}
template <bool kProjective>
STOKER_WIDE void find_points_wide(const double* m, int64_t i0, int64_t j, int64_t n, Points* points) {
  find_points<kProjective>(m, i0, j, n, points);
}

template <bool kProjective, class At>
void run(const View& src, const double m[8], const uint8_t* fill, const View& dst) {
  const Bytes from{src.data, src.shape[0], src.shape[1], src.stride[0], src.stride[1], src.stride[2]};
  const int64_t channels = dst.shape[2], step = dst.stride[2];
  const bool wide = has_wide();
  Points points;
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    for (int64_t i0 = 0; i0 < dst.shape[1]; i0 += kChunk) {
      const int64_t n = std::min(kChunk, dst.shape[1] - i0);
      (wide ? find_points_wide<kProjective> : find_points<kProjective>)(m, i0, j, n, &points);
      for (int64_t k = 0; k < n; ++k, to += dst.stride[1]) {
        const Point point{points.x[k], points.y[k]};
        if (point.inside(from)) {
          const At shown(from, point);
          for (int64_t c = 0; c < channels; ++c) to[c * step] = shown.at(c);
        } else {
          for (int64_t c = 0; c < channels; ++c) to[c * step] = fill[c];
        }
      }
    }
  }
}

#if STOKER_FOUR_DOUBLES

// The four pixels around each point of a chunk, as byte offsets below 2 GiB, so that vectors hold them.
struct Corners {
  double outside[kChunk];  // 0: the point is inside of the image
  int32_t upper[kChunk], lower[kChunk], left[kChunk], right[kChunk];
  double dx[kChunk], dy[kChunk];  // weights of the lower and right ones
};

// `end_x`, `end_y`: the largest coordinates inside of the image. Minima and maxima alone leave no branch in the loop.
[[gnu::always_inline]] inline void find_corners(const Points& points, int n, const Bytes& src, double end_x,
                                                double end_y, Corners* to) {
  const auto last_x = static_cast<int32_t>(src.width - 1), last_y = static_cast<int32_t>(src.height - 1);
  const auto row = static_cast<int32_t>(src.row), column = static_cast<int32_t>(src.column);
  for (int k = 0; k < n; ++k) {
    double x = points.x[k], y = points.y[k];
    // Clamping changes points outside of the image, and NaN, and no others.
    double near_x = x > 0 ? x : 0.0, near_y = y > 0 ? y : 0.0;
    near_x = near_x < end_x ? near_x : end_x;
    near_y = near_y < end_y ? near_y : end_y;
    to->outside[k] = std::fabs(near_x - x) + std::fabs(near_y - y);
    x = near_x - 0.5;
    y = near_y - 0.5;
    const int32_t i = static_cast<int32_t>(x) - static_cast<int32_t>(x < 0);  // floor, for values above -1
    const int32_t j = static_cast<int32_t>(y) - static_cast<int32_t>(y < 0);
    to->dx[k] = x - static_cast<double>(i);
    to->dy[k] = y - static_cast<double>(j);
    to->left[k] = std::max(i, 0) * column;
    to->right[k] = std::min(i + 1, last_x) * column;
    to->upper[k] = std::max(j, 0) * row;
    to->lower[k] = std::min(j + 1, last_y) * row;
  }
}

// LinearAt with the channels of a pixel in one register and the same operations on the same doubles. Where there is no
// row below, the lower row is the upper one, which leaves its values as they are. Several loops, because the latencies of
// the divisions and of the loads are too long for the processor to hide by overlapping whole pixels.
template <bool kProjective, int kChannels>
STOKER_WIDE void linear_wide(const View& src, const double m[8], const uint8_t* fill, const View& dst) {
  const Bytes from{src.data, src.shape[0], src.shape[1], src.stride[0], src.stride[1], src.stride[2]};
  const int64_t step = dst.stride[1];
  const double end_x = std::nextafter(static_cast<double>(from.width), 0.0);
  const double end_y = std::nextafter(static_cast<double>(from.height), 0.0);
  const uint8_t* last = from.data + (from.height - 1) * from.row + (from.width - 1) * from.column;
  Points points;
  Corners at;
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    for (int64_t i0 = 0; i0 < dst.shape[1]; i0 += kChunk) {
      const int n = static_cast<int>(std::min(kChunk, dst.shape[1] - i0));
      find_points<kProjective>(m, i0, j, n, &points);
      find_corners(points, n, from, end_x, end_y, &at);
      for (int k = 0; k < n; ++k, to += step) {
        if (!(at.outside[k] == 0)) {
          std::memcpy(to, fill, kChannels);
          continue;
        }
        const Square square{from.data + at.upper[k], from.data + at.lower[k], at.left[k], at.right[k]};
        interpolate<kChannels>(square, last, at.dx[k], at.dy[k], to);
      }
    }
  }
}

// Whether the offsets of all pixels fit into 32 bits.
bool fits_offsets(const View& src) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return src.shape[0] > 0 && src.shape[1] > 0 && src.stride[0] >= 0 && src.stride[1] >= 0 &&
         src.stride[0] <= kMost / src.shape[0] && src.stride[1] <= kMost / src.shape[1];
}

#endif

using Run = void (*)(const View&, const double*, const uint8_t*, const View&);

template <bool kProjective>
Run choose(Sampling sampling, const View& src, const View& dst) {
#if STOKER_FOUR_DOUBLES
  const bool wide = has_wide() && src.stride[2] == 1 && dst.stride[2] == 1 && fits_offsets(src);
  if (wide && sampling == Sampling::Linear && src.shape[2] == 3) return linear_wide<kProjective, 3>;
  if (wide && sampling == Sampling::Linear && src.shape[2] == 4) return linear_wide<kProjective, 4>;
#endif
  switch (sampling) {
    case Sampling::Nearest: return run<kProjective, NearestAt>;
    case Sampling::Linear: return run<kProjective, LinearAt>;
    case Sampling::Cubic: return run<kProjective, CubicAt>;
  }
  return nullptr;
}

}  // namespace

bool can_project(const View& src, const double m[8], bool projective, Sampling sampling, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != DType::U8 || dst.dtype != DType::U8) return false;
  if (src.shape[2] != dst.shape[2] || src.shape[2] > kMaxChannels) return false;
  if (!projective && sampling == Sampling::Nearest) return false;
  for (int i = 0; i < (projective ? 8 : 6); ++i)
    if (!std::isfinite(m[i])) return false;
  return true;
}

bool project(const View& src, const double m[8], bool projective, Sampling sampling, const uint8_t* fill,
             const View& dst) {
  if (!can_project(src, m, projective, sampling, dst)) return false;
  (projective ? choose<true>(sampling, src, dst) : choose<false>(sampling, src, dst))(src, m, fill, dst);
  return true;
}

}  // namespace stoker::warp
