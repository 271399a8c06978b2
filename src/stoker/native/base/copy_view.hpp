// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>

#include "base/tensor.hpp"

namespace stoker {

// Copies any view into contiguous memory of the same type.
inline void copy_contiguous(const View& from, uint8_t* to) {
  const size_t item = static_cast<size_t>(size_of(from.dtype));
  if (from.elements() == 0) return;  // its address may be null, which memcpy must not get
  if (from.contiguous()) {
    std::memcpy(to, from.data, item * static_cast<size_t>(from.elements()));
    return;
  }
  int64_t at[kMaxRank] = {};
  const uint8_t* p = from.data;
  for (int64_t left = from.elements(); left > 0; --left, to += item) {
    std::memcpy(to, p, item);
    for (int d = from.rank - 1; d >= 0; --d) {
      p += from.stride[d];
      if (++at[d] < from.shape[d]) break;
      p -= from.stride[d] * from.shape[d];
      at[d] = 0;
    }
  }
}

}  // namespace stoker
