// SPDX-License-Identifier: Apache-2.0
#include "warp/project.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// The four pixels around a point, and the weights of the lower right one.
struct Corners {
  const uint8_t *upper, *lower;  // rows; null outside of the image
  int64_t left, right;           // offsets in the rows
  double dx, dy;
};

// LinearAt with the channels of a pixel in one register and the same operations on the same doubles. Where there is no
// row below, the lower row is the upper one, which leaves its values as they are. Three loops hide the latencies of the
// divisions and of the loads.
template <bool kProjective, int kChannels>
STOKER_WIDE void linear_wide(const View& src, const double m[8], const uint8_t* fill, const View& dst) {
  const Bytes from{src.data, src.shape[0], src.shape[1], src.stride[0], src.stride[1], src.stride[2]};
  const int64_t step = dst.stride[1];
  Points points;
  Corners corners[kChunk];
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    for (int64_t i0 = 0; i0 < dst.shape[1]; i0 += kChunk) {
      const int64_t n = std::min(kChunk, dst.shape[1] - i0);
      find_points<kProjective>(m, i0, j, n, &points);
      for (int64_t k = 0; k < n; ++k) {
        const Point point{points.x[k], points.y[k]};
        Corners& at = corners[k];
        at.upper = nullptr;
        if (!point.inside(from)) continue;
        const int64_t left = whole(point.x - 0.5), top = whole(point.y - 0.5);
        at = {from.line(top),
              from.line(top + 1),
              from.across(left),
              from.across(left + 1),
              point.x - 0.5 - static_cast<double>(left),
              point.y - 0.5 - static_cast<double>(top)};
      }
      for (int64_t k = 0; k < n; ++k, to += step) {
        const Corners& at = corners[k];
        if (!at.upper) {
          std::memcpy(to, fill, kChannels);
          continue;
        }
        const auto pixel = [](const uint8_t* p) STOKER_WIDE { return load_doubles(pixel_bytes<kChannels>(p)); };
        const Doubles4 upper = lerp4(pixel(at.upper + at.left), pixel(at.upper + at.right), at.dx);
        const Doubles4 lower = lerp4(pixel(at.lower + at.left), pixel(at.lower + at.right), at.dx);
        const uint32_t bytes = truncated(lerp4(upper, lower, at.dy));
        std::memcpy(to, &bytes, kChannels);
      }
    }
  }
}

#endif

using Run = void (*)(const View&, const double*, const uint8_t*, const View&);

template <bool kProjective>
Run choose(Sampling sampling, const View& src, const View& dst) {
#if STOKER_FOUR_DOUBLES
  const bool wide = has_wide() && src.stride[2] == 1 && dst.stride[2] == 1;
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
