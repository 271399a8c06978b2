// SPDX-License-Identifier: Apache-2.0
// Access to rows of images [H,W,C] with arbitrary strides, for loops that need adjacent pixels or separate channels.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"
#include "pixel/kernels.hpp"

namespace stoker {

// Rows of an image with adjacent pixels: the image's own memory if it has that layout, else a copy that is valid until
// the next row is requested. T is the element type.
template <class T>
class RowsOf {
  static constexpr int64_t kItem = sizeof(T);

 public:
  explicit RowsOf(const View& v)
      : view_(v),
        packed_((v.shape[2] == 1 || v.stride[2] == kItem) && (v.shape[1] == 1 || v.stride[1] == v.shape[2] * kItem)),
        copy_(packed_ ? 0 : static_cast<size_t>(values())) {}

  int64_t values() const { return view_.shape[1] * view_.shape[2]; }
  int64_t bytes() const { return values() * kItem; }

  const T* row(int64_t y) {
    const uint8_t* from = view_.data + y * view_.stride[0];
    if (packed_) return reinterpret_cast<const T*>(from);
    T* to = copy_.data();
    for (int64_t x = 0; x < view_.shape[1]; ++x, from += view_.stride[1])
      for (int64_t c = 0; c < view_.shape[2]; ++c) *to++ = *reinterpret_cast<const T*>(from + c * view_.stride[2]);
    return copy_.data();
  }

 private:
  const View view_;
  const bool packed_;
  std::vector<T> copy_;
};

// Three channels of some pixels of a row as planes, `kPitch` elements apart.
template <class T>
struct Planes3Of {
  static constexpr int kAtATime = 1024;  // small enough for the L1 cache
  static constexpr int kPitch = kAtATime + 64;
  alignas(64) T value[3][kPitch];
  T* at[3] = {value[0], value[1], value[2]};
  uint8_t* memory[3] = {reinterpret_cast<uint8_t*>(value[0]), reinterpret_cast<uint8_t*>(value[1]),
                        reinterpret_cast<uint8_t*>(value[2])};

  // Call f(first pixel, count) for all pixels of a row, with the planes holding these pixels.
  template <class F>
  void each(const T* row, int64_t width, F&& f) {
    const pixel::Kernels& k = pixel::kernels();
    for (int64_t x = 0; x < width; x += kAtATime) {
      const int n = static_cast<int>(std::min<int64_t>(kAtATime, width - x));
      k.deal[sizeof(T)][3](memory, reinterpret_cast<const uint8_t*>(row + 3 * x), n);
      f(x, n);
    }
  }

  // Write the planes back to the row, from pixel x on.
  void put(uint8_t* row, int64_t x, int n) const {
    pixel::kernels().weave[sizeof(T)][3](row + 3 * x * static_cast<int64_t>(sizeof(T)), memory, n);
  }
};

using Rows = RowsOf<uint8_t>;
using Planes3 = Planes3Of<uint8_t>;

}  // namespace stoker
