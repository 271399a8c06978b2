// SPDX-License-Identifier: Apache-2.0
// `laplacian`: compute the weights, then the sums along the rows, then those down the columns, in the order of
// filter/correlate.cpp.
#pragma once
#include "device/own_order.cuh"
#include "shared/border.hpp"
#include "shared/derivative.hpp"

namespace stoker::own {

// Numbers: size of the derivative's window, size of the smoothing window and scale, for the derivative down the columns and
// then for that along the rows; the image's axes. A row's scratch memory: four windows of weights, then for each element
// the two sums along its row.
template <class Ports>
struct Laplacian {
  using In = typename Ports::template At<0>;
  using Out = typename Ports::template At<1>;
  static constexpr int kAxes = 6;
  static constexpr int64_t kRoom = 32;  // floats of a window; also in ops/image/laplacian.py

  struct Plan {
    float* weights[4];
    int64_t size[4];
    float* sums;
    explicit Plan(const Row& row) {
      for (int k = 0; k < 4; ++k) {
        weights[k] = row.scratch<float>() + k * kRoom;
        size[k] = static_cast<int64_t>(row.number(k / 2 * 3 + k % 2));
      }
      sums = weights[3] + kRoom;
    }
  };

  static void weigh(const Row& row, uint32_t) {
    const Plan plan(row);
    const uint32_t k = gpu::thread_index();
    if (k >= 4) return;
    double exact[derivative::kMost];
    derivative::window(exact, plan.size[k], k % 2 ? 0 : 2);
    for (int64_t i = 0; i < plan.size[k]; ++i) {
      const auto weight = static_cast<float>(exact[i]);
      // The scale belongs to the vertical window, whose sums come last.
      const bool scaled = k == 0 || k == 3;
      plan.weights[k][i] =
          scaled ? static_cast<float>(static_cast<double>(weight) * row.number(static_cast<int>(k / 2 * 3 + 2)))
                 : weight;
    }
  }

  static void across(const Row& row, uint32_t block) {
    const Plan plan(row);
    const Image from(row, 0, kAxes);
    order::each_element(from, block, [&](int64_t number, const order::Place& at) {
      for (int k = 1; k < 3; ++k) {
        float sum = 0;
        order::Place seen = at;
        for (int64_t j = 0; j < plan.size[k]; ++j) {
          seen.x = border_position(at.x - plan.size[k] / 2 + j, from.width, Border::Reflect101);
          sum += static_cast<float>(load<In>(order::address(from, seen))) * plan.weights[k][j];
        }
        plan.sums[2 * number + k - 1] = sum;
      }
    });
  }

  static void down(const Row& row, uint32_t block) {
    const Plan plan(row);
    const Image to(row, 1, kAxes);
    const int64_t line = to.width * (to.inner ? to.channels : 1);  // elements from a row to the next one
    order::each_element(to, block, [&](int64_t number, const order::Place& at) {
      float sum = 0;
      for (int k = 0; k < 2; ++k) {
        const int window = k ? 3 : 0;
        for (int64_t i = 0; i < plan.size[window]; ++i) {
          const int64_t y = border_position(at.y - plan.size[window] / 2 + i, to.height, Border::Reflect101);
          sum += plan.sums[2 * (number + (y - at.y) * line) + k] * plan.weights[window][i];
        }
      }
      store<Out>(order::address(to, at), op::cast<Out>(sum));
    });
  }
};

}  // namespace stoker::own
