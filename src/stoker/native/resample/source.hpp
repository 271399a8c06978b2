// SPDX-License-Identifier: Apache-2.0
// Source image of a resampling, with any strides, from which rows and columns are gathered.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/tensor.hpp"

namespace stoker::resample {

template <int kBytes>
inline void gather_fixed(const uint8_t* row, int64_t stride, const int32_t* start, int64_t n, uint8_t* dst) {
  for (int64_t x = 0; x < n; ++x) std::memcpy(dst + x * kBytes, row + start[x] * stride, kBytes);
}

// Copy pixel start[x] of a row to dst[x]; channels are contiguous.
inline void gather_pixels(const uint8_t* row, int64_t stride, int64_t bytes, const int32_t* start, int64_t n,
                          uint8_t* dst) {
  switch (bytes) {
    case 1: return gather_fixed<1>(row, stride, start, n, dst);
    case 2: return gather_fixed<2>(row, stride, start, n, dst);
    case 3: return gather_fixed<3>(row, stride, start, n, dst);
    case 4: return gather_fixed<4>(row, stride, start, n, dst);
    case 12: return gather_fixed<12>(row, stride, start, n, dst);
    case 16: return gather_fixed<16>(row, stride, start, n, dst);
    default:
      for (int64_t x = 0; x < n; ++x) std::memcpy(dst + x * bytes, row + start[x] * stride, bytes);
  }
}

// The source image, row by row.
class Source {
 public:
  explicit Source(const View& v) : view_(v), size_(size_of(v.dtype)), bytes_(v.shape[2] * size_) {
    channels_packed_ = view_.shape[2] == 1 || view_.stride[2] == size_;
    const bool aligned = reinterpret_cast<uintptr_t>(view_.data) % size_ == 0 && view_.stride[0] % size_ == 0;
    packed_ = channels_packed_ && aligned && (view_.shape[1] == 1 || view_.stride[1] == bytes_);
  }
  bool packed() const { return packed_; }
  int64_t pixel_bytes() const { return bytes_; }
  int64_t width() const { return view_.shape[1]; }
  int64_t row_stride() const { return view_.stride[0]; }
  const uint8_t* row(int64_t y) const { return view_.data + y * view_.stride[0]; }

  // Copy pixels start[0..n) of row y next to each other.
  void gather(int64_t y, const int32_t* start, int64_t n, uint8_t* dst) const {
    if (channels_packed_) return gather_pixels(row(y), view_.stride[1], bytes_, start, n, dst);
    for (int64_t x = 0; x < n; ++x)
      for (int64_t c = 0; c < view_.shape[2]; ++c, dst += size_)
        std::memcpy(dst, row(y) + start[x] * view_.stride[1] + c * view_.stride[2], size_);
  }

 private:
  const View& view_;
  int64_t size_, bytes_;
  bool channels_packed_, packed_;
};

}  // namespace stoker::resample
