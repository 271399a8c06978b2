// SPDX-License-Identifier: Apache-2.0
// `filter`: correlation with a window of weights, the operator's second input.
#pragma once
#include "device/own_correlate.cuh"

namespace stoker::own {

// Numbers: offset of the window relative to the pixel, constant of the border, the image's axes, the border mode.
template <class Ports>
struct Filter {
  static void correlate(const Row& row, uint32_t block) {
    STOKER_SHARED(Tile, tile);
    const Image from(row, 0, 3), to(row, 2, 3);
    const Port& weights = row.port(1);
    const Window window{reinterpret_cast<const uint8_t*>(weights.data),
                        weights.shape[0],
                        weights.shape[1],
                        weights.stride[0],
                        weights.stride[1],
                        static_cast<int64_t>(row.number(0)),
                        static_cast<int64_t>(row.number(1)),
                        static_cast<Border>(static_cast<int>(row.number(7))),
                        static_cast<float>(row.number(2))};
    correlate_block<typename Ports::template At<0>, typename Ports::template At<2>>(from, window, to, block, tile);
  }
};

}  // namespace stoker::own
