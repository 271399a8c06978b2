// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shared/device.cuh"

namespace stoker::jpeg {

// Row and column of each zig-zag position.
struct ZigZag {
  uint8_t row[64], column[64];
  STOKER_DEVICE constexpr ZigZag() : row(), column() {
    int y = 0, x = 0;
    for (int i = 0; i < 64; ++i) {
      row[i] = static_cast<uint8_t>(y);
      column[i] = static_cast<uint8_t>(x);
      const bool up = (y + x) % 2 == 0;
      if (up) {
        if (x == 7) ++y;
        else if (y == 0) ++x;
        else {
          --y;
          ++x;
        }
      } else {
        if (y == 7) ++x;
        else if (x == 0) ++y;
        else {
          ++y;
          --x;
        }
      }
    }
  }
};

}  // namespace stoker::jpeg
