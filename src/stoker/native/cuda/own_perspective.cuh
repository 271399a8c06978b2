// SPDX-License-Identifier: Apache-2.0
// `experimental.warp_perspective`: one pixel of the output after the other.
#pragma once
#include "../warp_project_point.hpp"
#include "own.cuh"

namespace stoker::own {

// kSampling as in warp_project.hpp. Numbers: eight of a matrix, four fills, the images' axes.
template <class Ports, int kSampling>
struct Perspective {
  static constexpr int64_t kPixels = 1024;  // of a block; also in ops/geometry/warp_perspective.py
  using At = std::conditional_t<kSampling == 0, warp::NearestAt,
                                std::conditional_t<kSampling == 1, warp::LinearAt, warp::CubicAt>>;

  // Read where it is used: kept in registers beside a cubic sample's sixteen places, it would spill.
  struct Matrix {
    const Row& row;
    double operator[](int i) const { return row.number(i); }
  };

  static void show(const Row& row, uint32_t block) {
    const Image from(row, 0, 12), to(row, 1, 12);
    const int64_t pixels = to.height * to.width, blocks = (pixels + kPixels - 1) / kPixels;
    const int64_t frame = block / blocks, begin = (block - frame * blocks) * kPixels;
    const int64_t end = begin + kPixels < pixels ? begin + kPixels : pixels;
    const warp::Bytes source{from.data + frame * from.frame, from.height, from.width, from.row, from.column,
                             from.channel};
    for (int64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
      const int64_t y = i / to.width, x = i - y * to.width;
      uint8_t* out = to.data + frame * to.frame + y * to.row + x * to.column;
      const warp::Point point = warp::point_of<true>(Matrix{row}, x, y);
      if (point.inside(source)) {
        const At shown(source, point);
        for (int64_t c = 0; c < to.channels; ++c) out[c * to.channel] = shown.at(c);
      } else {
        STOKER_UNROLL for (int c = 0; c < 4; ++c)
          if (c < to.channels) out[c * to.channel] = static_cast<uint8_t>(static_cast<int32_t>(row.number(8 + c)));
      }
    }
  }
};

}  // namespace stoker::own
