// SPDX-License-Identifier: Apache-2.0
// Projective interpolators of stages: one pixel of an image of bytes.
#pragma once
#include "device/stage_sample.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"
#include "shared/warp_project_point.hpp"

namespace stoker::stage {

// Projective interpolators need no scratch memory.
struct NoScratch {};

template <class At>
struct ProjectReader {
  const ProjectSlot&
      // A reference: the matrix is read where it is used, because with a cubic sample's sixteen neighbours a copy
      // would spill.
      slot;
  const warp::Bytes source;
  const bool single;

  ProjectReader(const ProjectSlot& s, const NoScratch&)
      : slot(s),
        source{array_at<uint8_t>(s.source.data),
               s.source.height,
               s.source.width,
               s.source.row,
               s.source.pixel,
               s.source.channel},
        single(s.source.channels == 1) {}

  template <int N>
  void sample(int64_t y, int64_t x, int64_t c, uint8_t* out) const {
    const warp::Point point = warp::point_of<true>(slot.matrix, x, y);
    if (point.inside(source)) {
      const At shown(source, point);
#pragma unroll
      for (int k = 0; k < N; ++k) out[k] = shown.at(c + k);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) out[k] = slot.fill[c + k];
    }
  }
};

// Interpolator of a generated stage; At is warp::NearestAt, LinearAt or CubicAt.
template <class At>
struct Projected {
  using Slot = ProjectSlot;
  using Scratch = NoScratch;
  using Reader = ProjectReader<At>;
  using Type = uint8_t;
  static constexpr bool kSamples = true, kHasScratch = false, kQuick = false;
  static constexpr int kStep = 2;  // as in affine interpolators
};

}  // namespace stoker::stage
