// SPDX-License-Identifier: Apache-2.0
#include "warp/project.hpp"

#include <cmath>

#include "shared/warp_project_point.hpp"

namespace stoker::warp {

namespace {

constexpr int64_t kMaxChannels = 4;

template <bool kProjective, class At>
void run(const View& src, const double m[8], const uint8_t* fill, const View& dst) {
  const Bytes from{src.data, src.shape[0], src.shape[1], src.stride[0], src.stride[1], src.stride[2]};
  const int64_t channels = dst.shape[2], step = dst.stride[2];
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    for (int64_t i = 0; i < dst.shape[1]; ++i, to += dst.stride[1]) {
      const Point point = point_of<kProjective>(m, i, j);
      if (point.inside(from)) {
        const At shown(from, point);
        for (int64_t c = 0; c < channels; ++c) to[c * step] = shown.at(c);
      } else {
        for (int64_t c = 0; c < channels; ++c) to[c * step] = fill[c];
      }
    }
  }
}

using Run = void (*)(const View&, const double*, const uint8_t*, const View&);

template <bool kProjective>
Run choose(Sampling sampling) {
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
  (projective ? choose<true>(sampling) : choose<false>(sampling))(src, m, fill, dst);
  return true;
}

}  // namespace stoker::warp
