// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device.cuh"

namespace stoker::jpeg::gpu {

// Natural position of each zig-zag position, columns first.
struct ColumnOrder {
  uint8_t at[64];
  STOKER_DEVICE constexpr ColumnOrder() : at() {
    int row = 0, column = 0;
    for (int i = 0; i < 64; ++i) {
      at[i] = static_cast<uint8_t>(8 * column + row);
      const bool up = (row + column) % 2 == 0;
      if (up) {
        if (column == 7) ++row;
        else if (row == 0) ++column;
        else { --row; ++column; }
      } else {
        if (row == 7) ++column;
        else if (column == 0) ++row;
        else { ++row; --column; }
      }
    }
  }
};
STOKER_CONSTANT ColumnOrder kColumnOrder;

}  // namespace stoker::jpeg::gpu
