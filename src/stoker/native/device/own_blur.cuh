// SPDX-License-Identifier: Apache-2.0
// `gaussian_blur`: compute the weights, then blur horizontally, then vertically: tiles in shared memory, or, where a tile
// with its surroundings is too large, the whole image in two passes.
#pragma once
#include "device/own_correlate.cuh"
#include "shared/bell.hpp"

namespace stoker::own {

// Numbers: sigma and size of the Gaussians, vertical and horizontal, then the image's axes. A row's scratch memory: a
// double and a float per weight, vertical and horizontal, then, if it has no tiles, the intermediate image as float32,
// frame by frame, in the order of its planes.
template <class Ports>
struct Blur {
  using In = typename Ports::template At<0>;
  using Out = typename Ports::template At<1>;
  static constexpr int32_t kRows = 32;                              // of a tile; also in ops/image/gaussian_blur.py
  static constexpr int32_t kAcrossTogether = 4, kDownTogether = 8;  // rows that a thread computes at a time

  struct Bells {
    int64_t size[2];
    double sigma[2];
    double* heights[2];
    float* weights[2];
    uint8_t* between;

    explicit Bells(const Row& row) {
      for (int i = 0; i < 2; ++i) {
        sigma[i] = row.number(2 * i);
        size[i] = static_cast<int64_t>(row.number(2 * i + 1));
      }
      const int64_t doubles = size[0] + size[1];
      heights[0] = row.scratch<double>();
      weights[0] = row.scratch<float>(doubles * static_cast<int64_t>(sizeof(double)));
      heights[1] = heights[0] + size[0];
      weights[1] = weights[0] + size[0];
      between = row.scratch<uint8_t>(doubles * static_cast<int64_t>(sizeof(double) + sizeof(float)));
    }
  };

  static Image between_of(const Bells& bells, const Image& from) {
    Image between = from;
    const int64_t item = sizeof(float), inner = from.inner ? from.channels : 1;
    between.data = bells.between;
    between.column = item * inner;
    between.row = between.column * from.width;
    between.channel = from.inner ? item : between.row * from.height;
    between.frame = between.row * from.height * (from.inner ? 1 : from.channels);
    return between;
  }

  // Compute the weights; one block per axis.
  static void weigh(const Row& row, uint32_t block) {
    STOKER_SHARED(double, total);
    const Bells bells(row);
    const int axis = static_cast<int>(block);
    const int64_t size = bells.size[axis];
    for (int64_t i = gpu::thread_index(); i < size; i += kThreads)
      bells.heights[axis][i] = correlate::bell_at(i, size, bells.sigma[axis]);
    gpu::block_barrier();
    if (gpu::thread_index() == 0) {
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) sum += bells.heights[axis][i];
      total = sum;
    }
    gpu::block_barrier();
    for (int64_t i = gpu::thread_index(); i < size; i += kThreads)
      bells.weights[axis][i] = static_cast<float>(bells.heights[axis][i] / total);
  }

  static Window window_of(const Bells& bells, int axis) {
    const int64_t size = bells.size[axis], item = sizeof(float);
    const auto* weights = reinterpret_cast<const uint8_t*>(bells.weights[axis]);
    if (axis == 0) return {weights, size, 1, item, item, size / 2, 0, Border::Reflect101, 0.0f};
    return {weights, 1, size, item, item, 0, size / 2, Border::Reflect101, 0.0f};
  }

  static void tile(const Row& row, uint32_t block) {
    using Memory = typename In::Memory;
    const Bells bells(row);
    const Image image(row, 0, 4), target(row, 1, 4);
    const TileOfPlane place(image, block, kRows);
    const Plane from(image, place.plane), to(target, place.plane);
    const auto step = static_cast<int32_t>(from.inner);
    const auto height = static_cast<int32_t>(bells.size[0]), width = static_cast<int32_t>(bells.size[1]);
    const Surroundings part{
        place.y - height / 2, place.v, width / 2, kRows - 1 + height, kTileWidth + (width - 1) * step,
        Border::Reflect101};
    auto* const seen = gpu::dynamic_shared<Memory>();
    const int32_t bytes = part.high * part.wide * static_cast<int32_t>(sizeof(Memory));
    auto* const between = gpu::dynamic_shared<float>() + (bytes + 15) / 16 * 4;  // kTileWidth sums per row
    read_surroundings<Memory>(
        from, part, Memory{}, [](const uint8_t* p) { return *reinterpret_cast<const Memory*>(p); },
        [&](int32_t i, Memory x) { seen[i] = x; });
    gpu::block_barrier();
    constexpr auto kGroups = static_cast<int32_t>(kThreads / kTileWidth);
    const auto v = static_cast<int32_t>(gpu::thread_index() % kTileWidth);
    const auto group = static_cast<int32_t>(gpu::thread_index() / kTileWidth);
    for (int32_t y = group * kAcrossTogether; y < part.high; y += kGroups * kAcrossTogether) {
      const int32_t first = y + kAcrossTogether <= part.high ? y : part.high - kAcrossTogether;
      float sums[kAcrossTogether] = {};
      const Memory* values = seen + first * part.wide + v;
      for (int32_t j = 0; j < width; ++j, values += step)
        add_products<In>(values, part.wide, bells.weights[1][j], sums);
      STOKER_UNROLL for (int k = 0; k < kAcrossTogether; ++k) between[(first + k) * kTileWidth + v] = sums[k];
    }
    gpu::block_barrier();
    if (place.v + v >= to.values()) return;
    uint8_t* const column = to.data + to.offset(place.v + v);
    for (int32_t y = group * kDownTogether; y < kRows && place.y + y < to.height; y += kGroups * kDownTogether) {
      float sums[kDownTogether] = {};
      const float* values = between + y * kTileWidth + v;
      for (int32_t i = 0; i < height; ++i, values += kTileWidth)
        add_products<F32>(values, kTileWidth, bells.weights[0][i], sums);
      STOKER_UNROLL for (int k = 0; k < kDownTogether; ++k) {
        if (const int64_t line = place.y + y + k; line < to.height)
          store<Out>(column + line * to.row, op::cast<Out>(sums[k]));
      }
    }
  }

  static void across(const Row& row, uint32_t block) {
    STOKER_SHARED(Tile, room);
    const Bells bells(row);
    const Image from(row, 0, 4);
    correlate_block<In, F32>(from, window_of(bells, 1), between_of(bells, from), block, room);
  }

  static void down(const Row& row, uint32_t block) {
    STOKER_SHARED(Tile, room);
    const Bells bells(row);
    const Image to(row, 1, 4);
    correlate_block<F32, Out>(between_of(bells, to), window_of(bells, 0), to, block, room);
  }
};

}  // namespace stoker::own
