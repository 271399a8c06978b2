// SPDX-License-Identifier: Apache-2.0
// `gaussian_blur`: compute the weights, then blur horizontally, then vertically.
#pragma once
#include "device/own_correlate.cuh"
#include "shared/bell.hpp"

namespace stoker::own {

// Numbers: sigma and size of the Gaussians, vertical and horizontal, then the image's axes. A row's scratch memory: a
// double and a float per weight, vertical and horizontal, then the intermediate image as float32, frame by frame, in
// the order of its planes.
template <class Ports>
struct Blur {
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

  static void across(const Row& row, uint32_t block) {
    STOKER_SHARED(Tile, tile);
    const Bells bells(row);
    const Image from(row, 0, 4);
    correlate_block<typename Ports::template At<0>, F32>(from, window_of(bells, 1), between_of(bells, from), block,
                                                         tile);
  }

  static void down(const Row& row, uint32_t block) {
    STOKER_SHARED(Tile, tile);
    const Bells bells(row);
    const Image to(row, 1, 4);
    correlate_block<F32, typename Ports::template At<1>>(between_of(bells, to), window_of(bells, 0), to, block, tile);
  }
};

}  // namespace stoker::own
