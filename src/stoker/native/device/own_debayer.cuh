// SPDX-License-Identifier: Apache-2.0
// `debayer`: a thread computes a pixel.
#pragma once
#include "device/own_order.cuh"
#include "shared/debayer.hpp"

namespace stoker::own {

// Numbers: row and column of the blue pixel, the axes of the input, those of the output, the algorithm.
template <class Ports>
struct Debayer {
  using T = typename Ports::template At<0>::Memory;

  static void colors(const Row& row, uint32_t block) {
    const Image from(row, 0, 2), to(row, 1, 6);
    const debayer::Mosaic mosaic =
        debayer::mosaic_of(static_cast<int64_t>(row.number(0)), static_cast<int64_t>(row.number(1)));
    const auto algorithm = static_cast<debayer::Algorithm>(static_cast<int>(row.number(10)));
    order::each_element(from, block, [&](int64_t, const order::Place& at) {
      // Pixels at the edges repeat their neighbours.
      const int64_t y = inner(at.y, from.height), x = inner(at.x, from.width);
      const auto value = [&](int64_t dy, int64_t dx) {
        return static_cast<uint32_t>(*reinterpret_cast<const T*>(order::address(from, {at.f, y + dy, x + dx, 0})));
      };
      const uint32_t corners = value(-1, -1) + value(-1, 1) + value(1, -1) + value(1, 1);
      const bool red = ((y ^ mosaic.red_row) & 1) == 0;
      const bool colored = (((x ^ mosaic.red_column) & 1) == 0) == red;
      const auto put = [&](int64_t c, uint32_t color) {
        *reinterpret_cast<T*>(order::address(to, {at.f, at.y, at.x, c})) = static_cast<T>(color);
      };
      const uint32_t own = value(0, 0), left = value(0, -1), right = value(0, 1), up = value(-1, 0), down = value(1, 0);
      if (algorithm == debayer::Algorithm::Gray) {
        put(0, debayer::gray_at(own, left, right, up, down, corners, red ? debayer::kRed : debayer::kBlue,
                                red ? debayer::kBlue : debayer::kRed, colored));
        return;
      }
      const auto found = algorithm == debayer::Algorithm::EdgeAware
                             ? debayer::color_at<true, T, uint32_t>(own, left, right, up, down, corners, colored)
                             : debayer::color_at<false, T, uint32_t>(own, left, right, up, down, corners, colored);
      put(red ? 0 : 2, found.line);
      put(1, found.green);
      put(red ? 2 : 0, found.other);
    });
  }

  // The algorithm Gradients, for bytes.
  static void gradients(const Row& row, uint32_t block) {
    static_assert(sizeof(T) == 1);
    const Image from(row, 0, 2), to(row, 1, 6);
    if (from.height < debayer::kLeastGradients || from.width < debayer::kLeastGradients) return colors(row, block);
    const debayer::Mosaic mosaic =
        debayer::mosaic_of(static_cast<int64_t>(row.number(0)), static_cast<int64_t>(row.number(1)));
    order::each_element(from, block, [&](int64_t, const order::Place& at) {
      debayer::pixels::Window window;
      for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 5; ++x)
          window.values[y][x] = *reinterpret_cast<const T*>(
              order::address(from, {at.f, mirrored(at.y + y - 2, from.height), mirrored(at.x + x - 2, from.width), 0}));
      const bool red = ((at.y ^ mosaic.red_row) & 1) == 0;
      const int64_t first = red ? mosaic.red_column : mosaic.red_column ^ 1;  // column that is not green
      const bool grouped = debayer::is_grouped(at.x, from.width, first);
      const auto found = ((at.x ^ first) & 1) == 0 ? debayer::gradient_color_at<true>(window, grouped)
                                                   : debayer::gradient_color_at<false>(window, grouped);
      const auto put = [&](int64_t c, T color) {
        *reinterpret_cast<T*>(order::address(to, {at.f, at.y, at.x, c})) = color;
      };
      put(red ? 0 : 2, found.line);
      put(1, found.green);
      put(red ? 2 : 0, found.other);
    });
  }

 private:
  static int64_t mirrored(int64_t at, int64_t extent) { return at < 0 ? -at : at < extent ? at : 2 * extent - 2 - at; }
  static int64_t inner(int64_t at, int64_t extent) { return at < 1 ? 1 : at > extent - 2 ? extent - 2 : at; }
};

}  // namespace stoker::own
