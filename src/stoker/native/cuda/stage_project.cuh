// SPDX-License-Identifier: Apache-2.0
// The projective samplers of stages: one pixel of an image of bytes.
#pragma once
#include "device.cuh"
#include "../warp_project_point.hpp"
#include "stage_sample.cuh"
#include "stage_slot.hpp"

namespace stoker::stage {

// What they need is in the slot.
struct NoRoom {};

template <class At>
struct ProjectReader {
  const ProjectSlot& slot;  // the matrix is read where it is used: beside a cubic sample's sixteen places, it would spill
  const warp::Bytes source;
  const bool single;

  ProjectReader(const ProjectSlot& s, const NoRoom&)
      : slot(s), source{array_at<uint8_t>(s.source.data), s.source.height, s.source.width, s.source.row, s.source.pixel,
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

// What a generated stage names as its sampler; At: warp::NearestAt, LinearAt or CubicAt.
template <class At>
struct Projected {
  using Slot = ProjectSlot;
  using Room = NoRoom;
  using Reader = ProjectReader<At>;
  using Type = uint8_t;
  static constexpr bool kSamples = true, kRooms = false, kQuick = false;
  static constexpr int kStep = 2;  // as for affine samplers
};

}  // namespace stoker::stage
