// SPDX-License-Identifier: Apache-2.0
// Rows of an image with the pixels that a window reads beyond both edges, and rows of a result, for elements of any type.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/tensor.hpp"
#include "shared/border.hpp"

namespace stoker {

// Call f with an integer constant that is the element's size: 1, 2, 4 or 8.
template <class F>
inline void with_size(int64_t size, F&& f) {
  switch (size) {
    case 1: return f(std::integral_constant<size_t, 1>{});
    case 2: return f(std::integral_constant<size_t, 2>{});
    case 4: return f(std::integral_constant<size_t, 4>{});
    default: return f(std::integral_constant<size_t, 8>{});
  }
}

inline bool has_dense_rows(const View& image) {
  const int64_t size = size_of(image.dtype), channels = image.shape[2];
  return (channels == 1 || image.stride[2] == size) && (image.shape[1] == 1 || image.stride[1] == channels * size);
}

// Rows of an image [H,W,C] with pixels.
class PaddedRows {
 public:
  PaddedRows(const View& image, int64_t left, int64_t right, Border border)
      : image_(image), left_(left), right_(right), border_(border), dense_(has_dense_rows(image)) {
    pixel_bytes_ = image.shape[2] * size_of(image.dtype);
  }
  // Elements of a row with its pixels beyond the edges.
  int64_t values() const { return (left_ + image_.shape[1] + right_) * image_.shape[2]; }

  // Copy row `y`, which may lie beyond the image, and call convert(first, count) for the image's elements. All bytes of a
  // constant border are `fill`.
  template <class Convert>
  void read(int64_t y, uint8_t fill, uint8_t* to, Convert&& convert) const {
    const int64_t width = image_.shape[1], row = border_position(y, image_.shape[0], border_);
    if (row < 0) {
      std::memset(to, fill, static_cast<size_t>((left_ + width + right_) * pixel_bytes_));
      return;
    }
    uint8_t* const inside = to + left_ * pixel_bytes_;
    gather(image_.data + row * image_.stride[0], inside);
    convert(inside, width * image_.shape[2]);
    for (int64_t x = -left_; x < 0; ++x) beyond(x, fill, inside);
    for (int64_t x = width; x < width + right_; ++x) beyond(x, fill, inside);
  }

 private:
  void gather(const uint8_t* from, uint8_t* to) const {
    const int64_t width = image_.shape[1], channels = image_.shape[2];
    if (dense_) {
      std::memcpy(to, from, static_cast<size_t>(width * pixel_bytes_));
      return;
    }
    with_size(size_of(image_.dtype), [&](auto size) {
      for (int64_t x = 0; x < width; ++x, from += image_.stride[1])
        for (int64_t c = 0; c < channels; ++c, to += size) std::memcpy(to, from + c * image_.stride[2], size);
    });
  }
  void beyond(int64_t x, uint8_t fill, uint8_t* inside) const {
    const int64_t from = border_position(x, image_.shape[1], border_);
    if (from < 0) std::memset(inside + x * pixel_bytes_, fill, static_cast<size_t>(pixel_bytes_));
    else std::memcpy(inside + x * pixel_bytes_, inside + from * pixel_bytes_, static_cast<size_t>(pixel_bytes_));
  }

  const View& image_;
  int64_t left_, right_, pixel_bytes_;
  Border border_;
  bool dense_;
};

// Write a row of contiguous elements to the image [H,W,C].
inline void scatter_row(const uint8_t* from, const View& image, int64_t y) {
  const int64_t width = image.shape[1], channels = image.shape[2];
  uint8_t* to = image.data + y * image.stride[0];
  if (has_dense_rows(image)) {
    std::memcpy(to, from, static_cast<size_t>(width * channels * size_of(image.dtype)));
    return;
  }
  with_size(size_of(image.dtype), [&](auto size) {
    for (int64_t x = 0; x < width; ++x, to += image.stride[1])
      for (int64_t c = 0; c < channels; ++c, from += size) std::memcpy(to + c * image.stride[2], from, size);
  });
}

}  // namespace stoker
