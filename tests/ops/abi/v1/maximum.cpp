// SPDX-License-Identifier: Apache-2.0
// An operator for version 1 of stoker/op.h, which is next to this file and never changes.
#include <stoker/op.h>

#include <algorithm>

ST_DECLARE(R"(
  Maximum of the pixels around each pixel.
  input image: uint8 | float32 (h, w, c)
  output: like image
  argument radius: int = 1. Pixels on each side.
  check radius >= 0: expected `radius` of at least 0
)")

ST_RUN(row) {
  const auto radius = static_cast<int64_t>(row.arg(0));
  st::dispatch(row.in(0), [&](auto zero) {
    using T = decltype(zero);
    const st::Array<const T> in(row.in(0));
    const st::Array<T> out(row.out(0));
    for (int64_t y = 0; y < in.shape(0); ++y)
      for (int64_t x = 0; x < in.shape(1); ++x)
        for (int64_t c = 0; c < in.shape(2); ++c) {
          T most = in(y, x, c);
          for (int64_t v = std::max<int64_t>(y - radius, 0); v <= std::min(y + radius, in.shape(0) - 1); ++v)
            for (int64_t u = std::max<int64_t>(x - radius, 0); u <= std::min(x + radius, in.shape(1) - 1); ++u)
              most = std::max(most, in(v, u, c));
          out(y, x, c) = most;
        }
  });
}
